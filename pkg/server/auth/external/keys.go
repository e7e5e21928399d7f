// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package external

import (
	"context"
	"crypto/rsa"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"strings"
	"sync"
	"time"

	"github.com/go-jose/go-jose/v4"
	"k8s.io/utils/clock"

	"github.com/platform-ai/platform/pkg/egress"
)

const (
	// refreshAfter is the age at which keys are fetched again in the background, so that a key that its issuer withdrew
	// is soon refused. The token that causes the fetch does not wait for it, and is checked with the known keys.
	refreshAfter = 5 * time.Minute
	// keepFor is how long keys are used while the issuer does not answer.
	keepFor = time.Hour
	// pauseBetween is the shortest time between two fetches, whoever causes them: tokens with unknown keys cannot be
	// used to flood the issuer.
	pauseBetween = 5 * time.Second
	// maxDocument is the maximum length of what an issuer answers, in bytes.
	maxDocument = 1 << 20
	// minKeyBits is the minimum length of a key (NIST SP 800-131A).
	minKeyBits = 2048
)

// fetchTimeout bounds one fetch, of metadata and keys. Tests lengthen it.
var fetchTimeout = 5 * time.Second

// keySet has the keys of an issuer. It fetches them when they are needed first, so a server starts without its issuer.
type keySet struct {
	issuer string
	url    string // empty: as the issuer's metadata says
	client *http.Client
	clock  clock.PassiveClock

	mu      sync.Mutex                // guards all below
	keys    map[string]*rsa.PublicKey // by their IDs; the only key, if there is one, is also that of no ID
	fetched time.Time                 // when keys were fetched
	tried   time.Time                 // when the last fetch began
	err     error                     // of the last fetch
	flight  chan struct{}             // closed when the fetch in progress is over; nil if there is none
}

// newKeySet makes the keys of an issuer.
func newKeySet(issuer, url, caFile string, c clock.PassiveClock) (*keySet, error) {
	transport := &http.Transport{Proxy: http.ProxyFromEnvironment, DisableKeepAlives: true, TLSHandshakeTimeout: fetchTimeout}
	if caFile != "" {
		pem, err := os.ReadFile(caFile)
		if err != nil {
			return nil, err
		}
		roots := x509.NewCertPool()
		if !roots.AppendCertsFromPEM(pem) {
			return nil, fmt.Errorf("%s has no certificate in PEM", caFile)
		}
		transport.TLSClientConfig = &tls.Config{RootCAs: roots, MinVersion: tls.VersionTLS12}
	}
	return &keySet{issuer: issuer, url: url, clock: c, client: &http.Client{
		Transport: transport, Timeout: fetchTimeout,
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}}, nil
}

// key returns the key of an ID. Without an ID, it is the only one that the issuer has.
func (s *keySet) key(ctx context.Context, id string) (*rsa.PublicKey, error) {
	k, flight := s.look(ctx, id)
	if k == nil && flight != nil {
		select {
		case <-flight:
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		}
		k, _ = s.look(ctx, id)
	}
	if k != nil {
		return k, nil
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.err != nil {
		return nil, fmt.Errorf("the keys of %s are not available: %w", s.issuer, s.err)
	}
	if id == "" {
		return nil, fmt.Errorf("the token has no kid, and %s has several keys", s.issuer)
	}
	return nil, fmt.Errorf("the token is signed with a key that %s does not have", s.issuer)
}

// look returns the key if it is known, and the fetch in progress, which it may begin.
func (s *keySet) look(ctx context.Context, id string) (*rsa.PublicKey, <-chan struct{}) {
	s.mu.Lock()
	defer s.mu.Unlock()
	now := s.clock.Now()
	age := now.Sub(s.fetched)
	if age >= keepFor {
		s.keys = nil
	}
	k := s.keys[id]
	if k != nil && age < refreshAfter {
		return k, nil
	}
	if s.flight == nil && (s.tried.IsZero() || now.Sub(s.tried) >= pauseBetween) {
		s.tried, s.flight = now, make(chan struct{})
		go s.refresh(context.WithoutCancel(ctx)) // ends within fetchTimeout
	}
	if s.flight == nil {
		return k, nil
	}
	return k, s.flight
}

// refresh fetches the keys. It is independent of the request that caused it, because others wait for it, too.
func (s *keySet) refresh(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, fetchTimeout)
	defer cancel()
	keys, err := s.fetch(ctx)
	s.mu.Lock()
	defer s.mu.Unlock()
	close(s.flight)
	s.flight, s.err = nil, err
	if err == nil {
		s.keys, s.fetched = keys, s.clock.Now()
	}
}

func (s *keySet) fetch(ctx context.Context) (map[string]*rsa.PublicKey, error) {
	address := s.url
	if address == "" {
		var metadata struct {
			Issuer  string `json:"issuer"`
			JWKSURI string `json:"jwks_uri"`
		}
		if err := s.get(ctx, strings.TrimSuffix(s.issuer, "/")+"/.well-known/openid-configuration", &metadata); err != nil {
			return nil, err
		}
		if metadata.Issuer != s.issuer {
			return nil, fmt.Errorf("the metadata are those of issuer %q", metadata.Issuer)
		}
		if metadata.JWKSURI == "" {
			return nil, errors.New("the metadata have no jwks_uri")
		}
		if err := egress.CheckSecure("jwks_uri", metadata.JWKSURI); err != nil {
			return nil, err
		}
		address = metadata.JWKSURI
	}
	var set struct {
		Keys []json.RawMessage `json:"keys"`
	}
	if err := s.get(ctx, address, &set); err != nil {
		return nil, err
	}
	keys := map[string]*rsa.PublicKey{}
	var usable []*rsa.PublicKey
	for _, raw := range set.Keys {
		var k jose.JSONWebKey
		if k.UnmarshalJSON(raw) != nil {
			continue // a kind of key that is not used here
		}
		public, ok := k.Key.(*rsa.PublicKey)
		if ok && (k.Use == "" || k.Use == "sig") && (k.Algorithm == "" || k.Algorithm == string(jose.RS256)) && public.N.BitLen() >= minKeyBits {
			keys[k.KeyID], usable = public, append(usable, public)
		}
	}
	switch len(usable) {
	case 0:
		return nil, errors.New("there is no RSA key for signatures with at least 2048 bits")
	case 1:
		keys[""] = usable[0]
	default:
		delete(keys, "")
	}
	return keys, nil
}

func (s *keySet) get(ctx context.Context, address string, into any) error {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, address, nil)
	if err != nil {
		return err
	}
	req.Header.Set("Accept", "application/json")
	resp, err := s.client.Do(req)
	if err != nil {
		return err
	}
	defer resp.Body.Close() //nolint:errcheck // it was only read
	if resp.StatusCode != http.StatusOK {
		return fmt.Errorf("GET %s: %s", address, resp.Status)
	}
	data, err := io.ReadAll(io.LimitReader(resp.Body, maxDocument+1))
	if err != nil {
		return fmt.Errorf("GET %s: %w", address, err)
	}
	if len(data) > maxDocument {
		return fmt.Errorf("GET %s: longer than %d bytes", address, maxDocument)
	}
	if err := json.Unmarshal(data, into); err != nil {
		return fmt.Errorf("GET %s: %w", address, err)
	}
	return nil
}
