// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package oauthprovider

import (
	"encoding/json"
	"io"
	"net/http"
	"strings"
)

// APIHost is the host of what people have at the provider, which takes its access tokens.
const APIHost = "api.provider.example"

// Call is a request to the API with a token that counts.
type Call struct {
	Method, Path, Query, Body string
	Header                    http.Header
	// Access is the token.
	Access string
}

// Calls returns the requests to the API that had a token that counts, in their order.
func (p *Provider) Calls() []Call {
	p.mu.Lock()
	defer p.mu.Unlock()
	return append([]Call(nil), p.calls...)
}

// api answers requests to the API: with what was sent, and 401 without a token that counts.
func (p *Provider) api(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return // the client has left
	}
	access, _ := strings.CutPrefix(r.Header.Get("Authorization"), "Bearer ")
	p.mu.Lock()
	g := p.access[access]
	counts := g != nil && !g.revoked
	if counts {
		p.calls = append(p.calls, Call{r.Method, r.URL.Path, r.URL.RawQuery, string(body), r.Header.Clone(), access})
	}
	n, answer := len(p.calls), p.answers[r.URL.Path]
	p.mu.Unlock()
	switch {
	case !counts:
		reply(w, http.StatusUnauthorized, map[string]any{"error": "invalid_token"})
	case answer == nil || !answer(w, r):
		if !json.Valid(body) {
			body = []byte("null")
		}
		reply(w, http.StatusOK, map[string]any{"call": n, "query": r.URL.RawQuery, "sent": json.RawMessage(body)})
	}
}

// RevokeAll revokes all grants, as a person may do at the provider.
func (p *Provider) RevokeAll() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, g := range p.access {
		g.revoked = true
	}
	for _, g := range p.tokens {
		g.revoked = true
	}
}
