// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

// Package chatadapter is an adapter of a chat system that exists in memory only. It speaks platform.gateway.v1 over TLS on loopback, remembers
// what it was sent, as its duty is, and misbehaves on demand. It is for tests of what is on the other side.
package chatadapter

import (
	"encoding/json"
	"encoding/pem"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"

	"github.com/platform-ai/platform/pkg/gateway/protocol"
	"github.com/platform-ai/platform/test/kit"
)

// Token is the token that the platform sends.
const Token = "the-platform-says-this-0123456789"

// Adapter is such an adapter. All methods may be called concurrently.
type Adapter struct {
	*httptest.Server
	// Can is what it says that it can do.
	Can protocol.Capability

	mu sync.Mutex
	// posted are the texts of the chat, in order, and answers what was said of each idempotency id.
	posted  []protocol.Delivery
	answers map[string]protocol.Answer
	// requests are all deliveries that arrived.
	requests []protocol.Delivery
	// fault, if it returns true, has answered.
	fault func(w http.ResponseWriter, d *protocol.Delivery) bool
}

// New starts an adapter until the end of the test.
func New(t testing.TB) *Adapter {
	t.Helper()
	a := &Adapter{answers: map[string]protocol.Answer{}, Can: protocol.Capability{
		InboundText: true, OutboundText: true, Threads: true, SenderIdentity: true, ExplicitSessions: true, IdempotentDelivery: true, InterimMessages: true,
	}}
	a.Server = httptest.NewTLSServer(a)
	t.Cleanup(a.Close)
	return a
}

// CA is the certificate of the adapter.
func (a *Adapter) CA() string {
	return string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: a.Certificate().Raw}))
}

// Leave stops the adapter, so that nobody listens any more.
func (a *Adapter) Leave() { a.Close() }

// Back starts the adapter again at the same address.
func (a *Adapter) Back(t testing.TB) {
	t.Helper()
	s := httptest.NewUnstartedServer(a)
	_ = s.Listener.Close()
	s.Listener = kit.Must[net.Listener](t)(net.Listen("tcp", a.Host()))
	s.StartTLS()
	t.Cleanup(s.Close)
	a.Server = s
}

// Host is where it listens.
func (a *Adapter) Host() string { return strings.TrimPrefix(a.URL, "https://") }

// ServeHTTP serves the routes of the protocol.
func (a *Adapter) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	reply := func(v any) {
		w.Header().Set("Content-Type", "application/json")
		if err := json.NewEncoder(w).Encode(v); err != nil {
			return // whoever asked has gone
		}
	}
	if r.Header.Get("Authorization") != "Bearer "+Token {
		w.WriteHeader(http.StatusUnauthorized)
		return
	}
	switch r.Method + " " + r.URL.Path {
	case "GET " + protocol.PathHealth:
		reply(protocol.Health{Status: "ok"})
	case "GET " + protocol.PathCapabilities:
		a.mu.Lock()
		defer a.mu.Unlock()
		reply(protocol.Capabilities{ProtocolVersion: protocol.Version, AdapterName: "stand-in", Capabilities: a.Can})
	case "POST " + protocol.PathDeliveries:
		raw, err := io.ReadAll(r.Body)
		var d protocol.Delivery
		if err == nil {
			err = protocol.Unmarshal(raw, &d)
		}
		if err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		a.mu.Lock()
		a.requests = append(a.requests, d)
		fault := a.fault
		a.mu.Unlock()
		if fault != nil && fault(w, &d) {
			return
		}
		reply(a.Post(&d))
	default:
		w.WriteHeader(http.StatusNotFound)
	}
}

// Post puts a text into the chat, once.
func (a *Adapter) Post(d *protocol.Delivery) protocol.Answer {
	a.mu.Lock()
	defer a.mu.Unlock()
	if answer, ok := a.answers[d.IdempotencyID]; ok {
		return answer
	}
	a.posted = append(a.posted, *d)
	answer := protocol.Answer{Status: protocol.Delivered, ProviderMessageID: fmt.Sprintf("m-%d", len(a.posted))}
	a.answers[d.IdempotencyID] = answer
	return answer
}

// Misbehave has another fault, or none.
func (a *Adapter) Misbehave(fault func(w http.ResponseWriter, d *protocol.Delivery) bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.fault = fault
}

// Said returns the texts of a thread, or of all if it is empty, in order.
func (a *Adapter) Said(thread string) (texts []string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, d := range a.posted {
		if thread == "" || d.ThreadID == thread {
			texts = append(texts, d.Text)
		}
	}
	return texts
}

// Attempts returns how often deliveries of a thread arrived.
func (a *Adapter) Attempts(thread string) (n int) {
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, d := range a.requests {
		if d.ThreadID == thread {
			n++
		}
	}
	return n
}
