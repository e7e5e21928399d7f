// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

// Package tokenservice is a token service for tests, on loopback: it signs tokens with any claims, publishes its key, and
// exchanges transaction tokens (RFC 8693, draft-ietf-oauth-transaction-tokens) as strictly as a real one. A test may have
// it lie.
package tokenservice

import (
	"crypto/rand"
	"crypto/rsa"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"net/http/httptest"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-jose/go-jose/v4"
	"github.com/go-jose/go-jose/v4/jwt"
)

// Claims are the claims of a token.
type Claims = map[string]any

// Exchange is an exchange that was asked for and granted.
type Exchange struct {
	// Subject and Issued are the claims jti of the token that was exchanged and of the new one.
	Subject, Issued string
	// Token is the new token.
	Token string
	// Form is what was sent, without the token.
	Form map[string]string
}

// Lie answers in place of the service. Claims are those of the token that the service would issue; a Lie that changes them
// and returns false lets the service issue that token.
type Lie func(w http.ResponseWriter, r *http.Request, claims Claims) (answered bool)

// Service is a token service. Its keys are at any path but /token.
type Service struct {
	*httptest.Server

	key *rsa.PrivateKey

	mu        sync.Mutex // guards all below
	lie       Lie
	exchanges []Exchange
	count     int
}

// New starts a service, which ends with the test.
func New(t testing.TB) *Service {
	t.Helper()
	key, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		t.Fatal(err)
	}
	s := &Service{key: key}
	s.Server = httptest.NewServer(s)
	t.Cleanup(s.Close)
	return s
}

// Lying sets what answers exchanges first; nil for nothing.
func (s *Service) Lying(l Lie) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.lie = l
}

// Exchanges returns the exchanges that were granted, in order.
func (s *Service) Exchanges() []Exchange {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.exchanges)
}

// Sign returns a token of a type. Issuer, times and jti are added unless the claims have them.
func (s *Service) Sign(typ string, claims Claims) (string, error) {
	return sign(s.key, typ, s.complete(claims))
}

// Forge is Sign with a key that is not the service's.
func (s *Service) Forge(typ string, claims Claims) (string, error) {
	key, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		return "", err
	}
	return sign(key, typ, s.complete(claims))
}

func (s *Service) complete(claims Claims) Claims {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.count++
	now := time.Now()
	all := Claims{"iss": s.URL, "aud": "platform", "iat": now.Unix(), "exp": now.Add(time.Hour).Unix(), "jti": "token-" + strconv.Itoa(s.count)}
	maps.Copy(all, claims)
	return all
}

func sign(key *rsa.PrivateKey, typ string, claims Claims) (string, error) {
	signer, err := jose.NewSigner(jose.SigningKey{Algorithm: jose.RS256, Key: jose.JSONWebKey{Key: key, KeyID: "k"}}, (&jose.SignerOptions{}).WithType(jose.ContentType(typ)))
	if err != nil {
		return "", err
	}
	return jwt.Signed(signer).Claims(claims).Serialize()
}

// Read returns the claims of a token of this service.
func (s *Service) Read(token string) (Claims, error) {
	parsed, err := jwt.ParseSigned(token, []jose.SignatureAlgorithm{jose.RS256})
	if err != nil {
		return nil, err
	}
	claims := Claims{}
	return claims, parsed.Claims(s.key.Public(), &claims)
}

// ServeHTTP answers a request for keys or an exchange.
func (s *Service) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Content-Type", "application/json")
	if r.URL.Path != "/token" {
		write(w, jose.JSONWebKeySet{Keys: []jose.JSONWebKey{{Key: s.key.Public(), KeyID: "k", Use: "sig", Algorithm: "RS256"}}})
		return
	}
	if code, err := s.exchange(w, r); err != nil {
		w.WriteHeader(http.StatusBadRequest)
		write(w, map[string]string{"error": code, "error_description": err.Error()})
	}
}

// write answers with JSON. A client that is gone needs no answer.
func write(w http.ResponseWriter, answer any) {
	if err := json.NewEncoder(w).Encode(answer); err != nil {
		w.WriteHeader(http.StatusInternalServerError)
	}
}

const typeTransaction = "urn:ietf:params:oauth:token-type:txn_token"

// exchange answers an exchange, or returns the error code of RFC 6749.
func (s *Service) exchange(w http.ResponseWriter, r *http.Request) (string, error) {
	if err := r.ParseForm(); err != nil || r.Method != http.MethodPost {
		return "invalid_request", fmt.Errorf("%s: %w", r.Method, err)
	}
	f := r.PostForm
	switch {
	case f.Get("grant_type") != "urn:ietf:params:oauth:grant-type:token-exchange":
		return "unsupported_grant_type", errors.New("grant_type")
	case f.Get("requested_token_type") != typeTransaction || f.Get("subject_token_type") != typeTransaction:
		return "invalid_request", errors.New("only transaction tokens are exchanged")
	}
	subject, err := s.Read(f.Get("subject_token"))
	if err != nil {
		return "invalid_grant", err
	}
	if exp, _ := subject["exp"].(float64); int64(exp) <= time.Now().Unix() {
		return "invalid_grant", errors.New("the subject token has expired")
	}
	had, _ := subject["scope"].(string)
	for scope := range strings.FieldsSeq(f.Get("scope")) {
		if !slices.Contains(strings.Fields(had), scope) {
			return "invalid_scope", errors.New("the subject lacks " + scope)
		}
	}
	seconds, err := strconv.Atoi(f.Get("expires_in"))
	if err != nil {
		seconds = 300
	}
	claims := s.complete(Claims{"exp": time.Now().Add(time.Duration(seconds) * time.Second).Unix(), "scope": f.Get("scope"), "parent": subject["jti"]})
	for _, name := range []string{"sub", "txn", "req_wl", "tctx", "aud"} {
		if v, ok := subject[name]; ok {
			claims[name] = v
		}
	}
	if aud := f.Get("audience"); aud != "" {
		claims["aud"] = aud
	}
	return s.issue(w, r, claims)
}

func (s *Service) issue(w http.ResponseWriter, r *http.Request, claims Claims) (string, error) {
	s.mu.Lock()
	lie := s.lie
	s.mu.Unlock()
	if lie != nil && lie(w, r, claims) {
		return "", nil
	}
	token, err := sign(s.key, "txntoken+jwt", claims)
	if err != nil {
		return "invalid_request", err
	}
	form := map[string]string{}
	for name := range r.PostForm {
		if name != "subject_token" {
			form[name] = r.PostForm.Get(name)
		}
	}
	s.mu.Lock()
	s.exchanges = append(s.exchanges, Exchange{Subject: fmt.Sprint(claims["parent"]), Issued: fmt.Sprint(claims["jti"]), Token: token, Form: form})
	s.mu.Unlock()
	return "", Answer(w, token)
}

// Answer writes the answer with a token.
func Answer(w http.ResponseWriter, token string) error {
	return json.NewEncoder(w).Encode(map[string]any{"access_token": token, "issued_token_type": typeTransaction, "token_type": "N_A", "expires_in": 300})
}
