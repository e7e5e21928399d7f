// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package router

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/platform-ai/platform/pkg/server/router"
	"github.com/platform-ai/platform/test/kit"
)

// stream is an answer that has begun.
type stream struct {
	code   int
	proto  string
	header http.Header
	body   io.ReadCloser
}

// open begins a request and returns its answer as soon as that begins.
func (s *shared) open(t *testing.T, client http.RoundTripper, path, body string, headers ...string) stream {
	t.Helper()
	res, err := client.RoundTrip(s.request(t, "POST", path, strings.NewReader(body), headers...))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { res.Body.Close() })
	return stream{code: res.StatusCode, proto: res.Proto, header: res.Header, body: res.Body}
}

// Each part of a stream reaches the client before the installation has sent the next.
func TestStreamsArriveAsTheyAreSent(t *testing.T) {
	t.Parallel()
	h := issuing(t)
	in := newInstallation(t, "installation-a")
	in.next = make(chan struct{})
	s := start(t, h, map[string]string{"team-a": in.URL})
	token := h.token(t, "team-a", "client")
	for _, path := range []string{"/openai/v1/chat/completions", "/openai/v1/responses", "/anthropic/v1/messages"} {
		res := s.open(t, http.DefaultTransport, path, `{"stream":true}`, "Authorization", "Bearer "+token, "Accept", "text/event-stream")
		if res.code != http.StatusOK || res.header.Get("Content-Type") != "text/event-stream" || res.header.Get("Cache-Control") != "private, no-store" {
			t.Fatalf("%s: %d %v", path, res.code, res.header)
		}
		lines := bufio.NewReader(res.body)
		for _, want := range []string{"installation-a", "!"} {
			in.next <- struct{}{}
			if data := nextData(t, lines); !strings.Contains(data, want) {
				t.Errorf("%s: got %q, want %q in it", path, data, want)
			}
		}
		close(in.next) // what may follow
		if _, err := io.Copy(io.Discard, lines); err != nil {
			t.Errorf("%s: the end of the stream: %v", path, err)
		}
		in.next = make(chan struct{})
	}
}

// nextData reads up to the next data line of a stream.
func nextData(t *testing.T, lines *bufio.Reader) string {
	t.Helper()
	for {
		line, err := lines.ReadString('\n')
		if err != nil {
			t.Fatal(err)
		}
		if data, ok := strings.CutPrefix(line, "data: "); ok {
			return strings.TrimSpace(data)
		}
	}
}

// If an installation breaks off a stream, the router breaks it off for the client too, which does not take it for complete.
func TestBrokenStream(t *testing.T) {
	t.Parallel()
	h := issuing(t)
	in := newInstallation(t, "installation-a")
	in.serve = func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/event-stream")
		_, _ = io.WriteString(w, "data: half\n\n")
		_ = http.NewResponseController(w).Flush()
		panic(http.ErrAbortHandler)
	}
	certificate := newCertificate(t, "127.0.0.1")
	plain := start(t, h, map[string]string{"team-a": in.URL})
	secure := start(t, h, map[string]string{"team-a": in.URL}, certificate.serve)
	token := h.token(t, "team-a", "client")
	for name, tc := range map[string]struct {
		s      *shared
		client http.RoundTripper
	}{"HTTP/1.1": {plain, http.DefaultTransport}, "HTTP/2.0": {secure, certificate.client()}} {
		res := tc.s.open(t, tc.client, "/openai/v1/chat/completions", `{"stream":true}`, "Authorization", "Bearer "+token)
		if res.proto != name {
			t.Errorf("the answer is %s, want %s", res.proto, name)
		}
		data, err := io.ReadAll(res.body)
		if string(data) != "data: half\n\n" || err == nil {
			t.Errorf("%s: got %q and %v, want half a stream and an error", name, data, err)
		}
		kit.Await(t, "the count of broken answers", func() bool {
			return strings.Contains(tc.s.metrics(t), `platform_router_broken_answers_total{endpoint="POST /openai/v1/chat/completions"} 1`)
		})
	}
}

// A client that leaves ends the request at the installation.
func TestClientLeaves(t *testing.T) {
	t.Parallel()
	h := issuing(t)
	in := newInstallation(t, "installation-a")
	gone := make(chan struct{}, 2)
	in.serve = func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/openai/v1/chat/completions" { // the stream; the other operation never answers
			w.Header().Set("Content-Type", "text/event-stream")
			_ = http.NewResponseController(w).Flush()
		}
		_, _ = io.Copy(io.Discard, r.Body)
		<-r.Context().Done()
		gone <- struct{}{}
	}
	s := start(t, h, map[string]string{"team-a": in.URL})
	token := h.token(t, "team-a", "client")
	res := s.open(t, http.DefaultTransport, "/openai/v1/chat/completions", `{"stream":true}`, "Authorization", "Bearer "+token)
	res.body.Close()
	<-gone

	c, err := net.Dial("tcp", strings.TrimPrefix(s.url, "http://"))
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	fmt.Fprintf(c, "POST /openai/v1/responses HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer %s\r\nContent-Length: 2\r\n\r\n{}", token)
	kit.Await(t, "the request", func() bool { return len(in.requests()) == 2 })
	c.Close()
	<-gone
	kit.Await(t, "the count of clients that left", func() bool {
		return strings.Contains(s.metrics(t), `platform_router_requests_total{endpoint="POST /openai/v1/responses",status="499"} 1`)
	})
}

// A client that does not read is disconnected, and its installation released. A client whose stream is merely silent for
// longer than that is not.
func TestClientThatDoesNotRead(t *testing.T) {
	t.Parallel()
	h := issuing(t)
	token := h.token(t, "team-a", "client")
	c := newCertificate(t, "127.0.0.1")
	// The deadlines of sockets pass in real time. The parts of the silent stream are sent within it. Package writetimeout shows the exact time.
	quick := func(o *router.Options) { o.WriteTimeout = 2 * time.Second }
	t.Run("HTTP/1.1", func(t *testing.T) {
		t.Parallel()
		testClientThatDoesNotRead(t, h, token, func() http.RoundTripper { return &http.Transport{} }, quick)
	})
	t.Run("HTTP/2", func(t *testing.T) {
		t.Parallel()
		testClientThatDoesNotRead(t, h, token, c.client, quick, c.serve)
	})
}

func testClientThatDoesNotRead(t *testing.T, h *issuer, token string, client func() http.RoundTripper, configure ...func(*router.Options)) {
	in := newInstallation(t, "installation-a")
	released, silent := make(chan struct{}), make(chan struct{})
	in.serve = func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "text/event-stream")
		if r.URL.Path == "/openai/v1/responses" {
			_ = http.NewResponseController(w).Flush()
			<-silent
			_, _ = io.WriteString(w, "data: at last\n\n")
			return
		}
		for part := strings.Repeat("data: much\n\n", 1000); ; {
			if _, err := io.WriteString(w, part); err != nil {
				close(released)
				return
			}
		}
	}
	s := start(t, h, map[string]string{"team-a": in.URL}, configure...)
	waiting := s.open(t, client(), "/openai/v1/responses", `{"stream":true}`, "Authorization", "Bearer "+token)
	s.open(t, client(), "/openai/v1/chat/completions", `{"stream":true}`, "Authorization", "Bearer "+token)
	<-released
	close(silent)
	data, err := io.ReadAll(waiting.body)
	if string(data) != "data: at last\n\n" || err != nil {
		t.Errorf("the silent stream: %q, %v", data, err)
	}
}

// Many clients of two namespaces stream at once while routes change: each gets the stream of its own installation,
// whole.
func TestManyStreams(t *testing.T) {
	kit.Needs(t, kit.Minutes)
	t.Parallel()
	h := issuing(t)
	a, b := newInstallation(t, "installation-a"), newInstallation(t, "installation-b")
	s := start(t, h, map[string]string{"team-a": a.URL, "team-b": b.URL}, func(o *router.Options) { o.RoutesReloadInterval = time.Millisecond })
	tokens := map[string]string{"installation-a": h.token(t, "team-a", "client"), "installation-b": h.token(t, "team-b", "client")}
	var clients sync.WaitGroup
	for name, token := range tokens {
		for range 8 {
			clients.Go(func() {
				for range 25 {
					r := s.plainRequest(t, "/openai/v1/chat/completions", `{"stream":true}`, token)
					res, err := http.DefaultTransport.RoundTrip(r)
					if err != nil {
						t.Error(err)
						return
					}
					data, err := io.ReadAll(res.Body)
					res.Body.Close()
					if err != nil || !strings.Contains(string(data), name) || !strings.HasSuffix(string(data), "data: [DONE]\n\n") {
						t.Errorf("%s: %d %q, %v", name, res.StatusCode, data, err)
					}
				}
			})
		}
	}
	done := make(chan struct{})
	go func() { clients.Wait(); close(done) }()
	for i := 0; ; i++ {
		select {
		case <-done:
			return
		default:
		}
		routes := map[string]string{"team-a": a.URL, "team-b": b.URL}
		if i%2 == 0 {
			routes["team-c"] = a.URL
		}
		s.writeRoutes(t, routes)
	}
}

// plainRequest is a request of a goroutine, which may not end the test.
func (s *shared) plainRequest(t *testing.T, path, body, token string) *http.Request {
	r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, s.url+path, strings.NewReader(body))
	if err != nil {
		t.Error(err)
		return &http.Request{}
	}
	r.Header.Set("Authorization", "Bearer "+token)
	return r
}

// A router that is told to stop accepts no more requests, and lets open ones finish.
func TestShutdown(t *testing.T) {
	t.Parallel()
	h := issuing(t)
	in := newInstallation(t, "installation-a")
	in.next = make(chan struct{})
	s := start(t, h, map[string]string{"team-a": in.URL})
	token := h.token(t, "team-a", "client")
	res := s.open(t, http.DefaultTransport, "/openai/v1/chat/completions", `{"stream":true}`, "Authorization", "Bearer "+token)
	s.stop()
	kit.Await(t, "the end of the listener", func() bool {
		c, err := net.Dial("tcp", strings.TrimPrefix(s.url, "http://"))
		if err == nil {
			c.Close()
		}
		return err != nil
	})
	close(in.next)
	data, err := io.ReadAll(res.body)
	if err != nil || !strings.HasSuffix(string(data), "data: [DONE]\n\n") {
		t.Errorf("the stream under way: %q, %v", data, err)
	}
	if err := <-s.done; err != nil {
		t.Errorf("the router ended with: %v", err)
	}
	s.done <- nil
}

// Requests that have not ended in time are cut off, and the program reports it.
func TestShutdownTimeout(t *testing.T) {
	t.Parallel()
	h := issuing(t)
	in := newInstallation(t, "installation-a")
	in.next = make(chan struct{})
	defer close(in.next)
	s := start(t, h, map[string]string{"team-a": in.URL}, func(o *router.Options) { o.ShutdownTimeout = 10 * time.Millisecond })
	token := h.token(t, "team-a", "client")
	res := s.open(t, http.DefaultTransport, "/openai/v1/chat/completions", `{"stream":true}`, "Authorization", "Bearer "+token)
	s.stop()
	if _, err := io.ReadAll(res.body); !errors.Is(err, io.ErrUnexpectedEOF) {
		t.Errorf("the stream ended with %v", err)
	}
	if err := <-s.done; err == nil || !strings.Contains(err.Error(), "--shutdown-timeout") {
		t.Errorf("the router ended with: %v", err)
	}
	s.done <- nil
}
