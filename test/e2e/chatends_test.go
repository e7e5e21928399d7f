// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"sync"
	"testing"

	"github.com/platform-ai/platform/test/kit"
	"github.com/platform-ai/platform/test/scriptedmodel/script"
)

// slowModel says what it was told. While it is held, it thinks.
type slowModel struct {
	url     string
	model   *script.Server
	mu      sync.Mutex
	thought *thought // nil if it is not held
}

// thought is the time in which a model is held.
type thought struct {
	begin      sync.Once
	begun, end chan struct{}
}

// newSlowModel returns a model that the tasks of a place can reach.
func newSlowModel(t *testing.T, p place) *slowModel {
	t.Helper()
	m := &slowModel{model: script.New(kit.Must[*script.Script](t)(script.Parse([]byte(`turns: [{reply: {text: "You said: {{ .Prompt }}"}}]`))), io.Discard)}
	vendor := httptest.NewUnstartedServer(m)
	_ = vendor.Listener.Close() // on an address that others may not reach
	vendor.Listener = kit.Must[net.Listener](t)(net.Listen("tcp", net.JoinHostPort(p.Address(), "0")))
	vendor.Start()
	t.Cleanup(vendor.Close)
	t.Cleanup(m.goOn) // before
	m.url = vendor.URL
	return m
}

func (m *slowModel) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	m.mu.Lock()
	thought := m.thought
	m.mu.Unlock()
	if thought != nil {
		thought.begin.Do(func() { close(thought.begun) })
		select {
		case <-thought.end:
		case <-r.Context().Done():
			return
		}
	}
	m.model.ServeHTTP(w, r)
}

// hold has the model think about what it is asked next, until goOn. What is returned is closed when it is asked.
func (m *slowModel) hold() (begun <-chan struct{}) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.thought = &thought{begun: make(chan struct{}), end: make(chan struct{})}
	return m.thought.begun
}

func (m *slowModel) goOn() {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.thought != nil {
		close(m.thought.end)
		m.thought = nil
	}
}

// requests returns how often the model was asked.
func (m *slowModel) requests() int { return len(m.model.Exchanges()) }

// newDoor returns an address at which an adapter on this machine can post events of a gateway: of a proxy that publishes that one path of
// the place's server, as docs/gateways.md has it for adapters outside a cluster.
func newDoor(t *testing.T, p place, gateway string) string {
	t.Helper()
	base, client := p.Direct(t)
	to := kit.Must[*url.URL](t)(url.Parse(base))
	path := "/api/v1/gateways/" + p.Namespace() + "/" + gateway + "/events"
	proxy := &httputil.ReverseProxy{
		Rewrite: func(r *httputil.ProxyRequest) { r.SetURL(to) }, Transport: client.Transport, ErrorLog: log.New(io.Discard, "", 0), // the server is killed
	}
	mux := http.NewServeMux()
	mux.Handle("POST "+path, proxy)
	door := httptest.NewServer(mux)
	t.Cleanup(door.Close)
	return door.URL + path
}
