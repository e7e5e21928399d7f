// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package models

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/platform-ai/platform/pkg/apis/core/v1alpha1"
	"github.com/platform-ai/platform/pkg/egress"
	"github.com/platform-ai/platform/pkg/llm"
	"github.com/platform-ai/platform/pkg/llm/vendors"
	"github.com/platform-ai/platform/pkg/llm/wire"
	"github.com/platform-ai/platform/pkg/plan"
	"github.com/platform-ai/platform/pkg/redact"
)

// maxClients bounds how many clients of vendors are kept.
const maxClients = 512

// Candidate is a model that may answer a request.
type Candidate struct {
	// Provider is shared and must not be changed.
	Provider *v1alpha1.Provider
	// Model is the name by which the Provider's service knows it.
	Model string

	key    key
	models *Models
}

// Renew reads the key of the Provider again, and reports whether it is another one than before. It is for a candidate whose
// vendor refused the key, which may have been replaced in the meantime.
func (c *Candidate) Renew(ctx context.Context) bool {
	c.models.kept.secrets.Forget(c.key.secret)
	now := c.key
	if now.read(ctx, c.models) != nil || now.value == "" || now.value == c.key.value {
		return false
	}
	if now.hosts != c.key.hosts && !c.models.permits(c.Provider, now) {
		return false
	}
	c.key = now
	return true
}

// permits reports whether a key may be sent to its Provider.
func (m *Models) permits(p *v1alpha1.Provider, k key) bool {
	to, err := vendors.Address(&p.Spec)
	return err == nil && plan.MaySend(k.secret, k.hosts, m.o.RequireSecretHosts, to) == nil
}

// LLM returns the candidate for llm.Call. The error says which field of the Provider is wrong.
func (c Candidate) LLM() (llm.Candidate, error) {
	known, err := c.models.clients.get(c)
	if err != nil {
		return llm.Candidate{}, fmt.Errorf("provider %q: %w", c.Provider.Name, err)
	}
	return llm.Candidate{Provider: c.Provider.Name, Name: c.Model, Model: known.model, Drain: c.Drain()}, nil
}

// Quirks returns what is known about the Provider's server, to which a caller of Send adds what it learns.
func (c Candidate) Quirks() *llm.Quirks {
	known, err := c.models.clients.get(c)
	if err != nil { // Send says so, too
		return &llm.Quirks{}
	}
	return &known.quirks
}

// Drain returns how long an answer is read on after its caller has left.
func (c Candidate) Drain() time.Duration {
	if s := c.Provider.Spec.DrainSeconds; s != nil {
		return min(time.Duration(*s)*time.Second, MaxDrain)
	}
	return c.models.o.Drain
}

// Protocol returns the API that the Provider's servers speak.
func (c Candidate) Protocol() llm.Protocol {
	vendor, _ := vendors.Find(c.Provider.Spec.Type)
	return vendor.Protocol
}

// TargetError says that a Provider does not have an operation.
type TargetError struct{ Err error }

// Error names the Provider and the reason.
func (e *TargetError) Error() string { return e.Err.Error() }

// Unwrap returns the reason.
func (e *TargetError) Unwrap() error { return e.Err }

// UnsentError says that a Provider did not get a request, because there was no connection to it.
type UnsentError struct{ text string }

// Error says why.
func (e *UnsentError) Error() string { return e.text }

// Send posts a body to an operation of the Provider's own API, such as chat/completions, with the Provider's
// credentials. It follows no redirect. The header is that of the request and is completed here; so is the query, whose
// parameters count where the Provider's address does not have them. The error is a *TargetError if the Provider does not have
// the operation, and an *UnsentError if it did not get the request; the text of any other error is safe to show, too.
func (c Candidate) Send(ctx context.Context, path string, query url.Values, header http.Header, body []byte) (*http.Response, error) {
	vendor, ok := vendors.Find(c.Provider.Spec.Type)
	if !ok {
		return nil, &TargetError{fmt.Errorf("provider %q: spec.type: must be %s, not %s", c.Provider.Name, vendors.Types(), c.Provider.Spec.Type)}
	}
	target, err := vendor.Target(llm.Endpoint{Spec: &c.Provider.Spec, Key: c.key.value}, path)
	if err != nil {
		return nil, &TargetError{fmt.Errorf("provider %q: %w", c.Provider.Name, err)}
	}
	withQuery(target.URL, query)
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, target.URL.String(), bytes.NewReader(body))
	if err != nil {
		return nil, &TargetError{fmt.Errorf("provider %q: spec.baseURL cannot be used", c.Provider.Name)}
	}
	for name, values := range target.Header {
		if name != "Anthropic-Version" || header.Get(name) == "" { // a client may name another version, but no credentials
			header[name] = values
		}
	}
	req.Header = header
	resp, err := c.key.hosts.Transport(c.models.transport).RoundTrip(req)
	if err != nil {
		text := fmt.Sprintf("provider %q: %s", c.Provider.Name, wire.Key(c.key.value).Describe(err)) // the text of the cause may hold the address
		if wire.Unsent(err) {
			return nil, &UnsentError{text}
		}
		return nil, errors.New(text)
	}
	return resp, nil
}

// withQuery adds parameters to an address. Those that it has, such as the version of Azure's API, stay as they are.
func withQuery(to *url.URL, more url.Values) {
	if len(more) == 0 {
		return
	}
	query := to.Query()
	for name, values := range more {
		if !query.Has(name) {
			query[name] = values
		}
	}
	to.RawQuery = query.Encode()
}

// Scrub removes the Provider's key from what its server said.
func (c Candidate) Scrub(text []byte) []byte {
	return []byte(redact.KnownOf(c.key.value).JSON(string(text)))
}

// LLM returns the candidates for llm.Call.
func (c *Choice) LLM() ([]llm.Candidate, error) {
	all := make([]llm.Candidate, len(c.Candidates))
	for i, candidate := range c.Candidates {
		var err error
		if all[i], err = candidate.LLM(); err != nil {
			return nil, err
		}
	}
	return all, nil
}

// clients keeps the vendors' clients, and with them what was learned about their servers.
type clients struct {
	mu  sync.Mutex
	all map[clientKey]*client
}

type client struct {
	model  llm.Model
	quirks llm.Quirks
}

// clientKey identifies the state of a Provider and its key, without holding the key.
type clientKey struct {
	uid        types.UID
	generation int64
	key        [sha256.Size]byte
	hosts      egress.Hosts
}

func (s *clients) get(c Candidate) (*client, error) {
	id := clientKey{uid: c.Provider.UID, generation: c.Provider.Generation, key: sha256.Sum256([]byte(c.key.value)), hosts: c.key.hosts}
	s.mu.Lock()
	defer s.mu.Unlock()
	if known, ok := s.all[id]; ok {
		return known, nil
	}
	vendor, ok := vendors.Find(c.Provider.Spec.Type)
	if !ok {
		return nil, fmt.Errorf("spec.type: must be %s, not %s", vendors.Types(), c.Provider.Spec.Type)
	}
	out := &client{}
	var err error
	out.model, err = vendor.New(llm.Endpoint{
		Spec: c.Provider.Spec.DeepCopy(), Key: c.key.value, Hosts: c.key.hosts, Clock: c.models.o.Clock, Transport: c.models.transport, Quirks: &out.quirks,
	})
	if err != nil {
		return nil, err
	}
	if s.all == nil || len(s.all) >= maxClients { // all share one transport, so that a dropped client leaves no connection behind
		s.all = map[clientKey]*client{}
	}
	s.all[id] = out
	return out, nil
}
