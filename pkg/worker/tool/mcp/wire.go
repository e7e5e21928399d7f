// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package mcp

import (
	"bytes"
	"context"
	"io"
	"maps"
	"mime"
	"net/http"
	"net/http/httptrace"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/platform-ai/platform/pkg/egress"
	"github.com/platform-ai/platform/pkg/worker/tool"
)

// maxRedirects is how many redirects a request follows.
const maxRedirects = 10

// wire carries the requests of one session. It limits what the server sends before anything is decoded, adds headers,
// and ends everything with the session, because the SDK detaches some of its requests from the caller's context.
type wire struct {
	server *server
	next   *http.Transport
	life   context.Context //nolint:containedctx // ends with the session
	stop   context.CancelCauseFunc

	// sent is set once a part of the call has left.
	sent atomic.Bool

	mu   sync.Mutex
	made bool // the call is being made
	left int  // bytes that the server may still send
	what string
	// approval is the id of the approval of the call, once the call is made.
	approval string
	// status and broken describe the last request, and from the call on the call: what the server answered, or why it was not reached.
	status int
	broken error
	// called is the request of the call; nil before it.
	called *http.Request
}

func newWire(life context.Context, stop context.CancelCauseFunc, s *server) *wire {
	next := s.options.Guard.Transport()
	next.ResponseHeaderTimeout = 0 // the time of the whole session is limited
	return &wire{
		server: s, next: next, life: life, stop: stop,
		left: maxDiscovery, what: "the server of " + s.name + " sends more than 2 MiB before the tool is found",
	}
}

// calling limits what the server may send from now on to n bytes; what is the error for more. From now on requests name
// the approval of the call, by which a server can recognise a repetition.
func (w *wire) calling(n int, what string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.left, w.what, w.approval, w.made = n, what, tool.ApprovalOf(w.life), true
}

// last returns the status of the last answer, or why there is none.
func (w *wire) last() (status int, broken error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.status, w.broken
}

func (w *wire) note(req *http.Request, status int, broken error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.called == nil || w.called == req {
		w.status, w.broken = status, broken
	}
}

// fail ends the session.
func (w *wire) fail(e *tool.Error) error {
	w.stop(e)
	return e
}

// redirect lets a request be repeated at another path of the same server only, so that neither its headers nor its
// body reach anybody else.
func (w *wire) redirect(next *http.Request, via []*http.Request) error {
	first := via[0]
	switch {
	case len(via) > maxRedirects:
		return w.fail(tool.Errorf(tool.TypeLimitReached, "the server of %s redirects more than %d times", w.server.name, maxRedirects))
	case !egress.SameOrigin(next.URL, first.URL) || next.URL.User != nil:
		return w.fail(tool.Errorf(tool.TypePermissionDenied, "the server of %s redirects to another host, which is not followed; correct spec.mcp.remote.url", w.server.name))
	case next.Method != first.Method:
		return w.fail(tool.Errorf(tool.TypeUnavailable, "the server of %s redirects without the request's body; correct spec.mcp.remote.url", w.server.name))
	}
	return nil
}

// RoundTrip sends a request and returns an answer of which only bounded JSON messages are left.
func (w *wire) RoundTrip(req *http.Request) (*http.Response, error) {
	ctx, cancel := context.WithCancel(req.Context())
	unlink := context.AfterFunc(w.life, cancel) //nolint:contextcheck // the session may end before the request
	release := func() { unlink(); cancel() }
	req = w.watched(req.Clone(ctx))
	w.headers(req)
	res, err := w.server.options.Hosts.Transport(w.next).RoundTrip(req)
	if err != nil {
		release()
		w.note(req, 0, err)
		return nil, err
	}
	w.note(req, res.StatusCode, nil)
	body := &limited{wire: w, from: res.Body, release: release}
	if kind, _, _ := mime.ParseMediaType(res.Header.Get("Content-Type")); kind == "text/event-stream" {
		res.Body = &events{from: body, wire: w}
		return res, nil
	}
	defer func() { _ = body.Close() }()
	raw, err := io.ReadAll(body)
	if err != nil {
		return nil, err
	}
	message, err := w.message(raw)
	if err != nil {
		return nil, err
	}
	res.Body, res.ContentLength = io.NopCloser(bytes.NewReader(message)), int64(len(message))
	return res, nil
}

// watched returns the request, which notes when a part of it leaves if it is the call.
func (w *wire) watched(req *http.Request) *http.Request {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.called != nil || !w.made || req.Method != http.MethodPost {
		return req
	}
	trace := &httptrace.ClientTrace{WroteHeaderField: func(string, []string) { w.sent.Store(true) }}
	w.called = req.WithContext(httptrace.WithClientTrace(req.Context(), trace))
	return w.called
}

func (w *wire) headers(req *http.Request) {
	for _, name := range slices.Sorted(maps.Keys(w.server.headers)) {
		if req.Header.Get(name) == "" {
			req.Header.Set(name, w.server.headers[name])
		}
	}
	if k := w.server.options.Credential; k != "" {
		req.Header.Set("Authorization", "Bearer "+k)
	}
	w.mu.Lock()
	approval := w.approval
	w.mu.Unlock()
	if approval != "" && req.Method == http.MethodPost {
		req.Header.Set("Idempotency-Key", approval)
	}
	if trace := w.server.options.Traceparent; trace != "" {
		req.Header.Set("Traceparent", trace)
	}
	req.Header.Set("User-Agent", "platform-tool/1.0")
}

// limited counts what is read of a body, after its decompression.
type limited struct {
	wire    *wire
	from    io.ReadCloser
	release func()
}

func (l *limited) Read(p []byte) (int, error) {
	n, err := l.from.Read(p)
	l.wire.mu.Lock()
	l.wire.left -= n
	over, what := l.wire.left < 0, l.wire.what
	l.wire.mu.Unlock()
	if over {
		return 0, l.wire.fail(tool.Errorf(tool.TypeLimitReached, "%s", what))
	}
	return n, err
}

// Close ends the request.
func (l *limited) Close() error {
	l.release()
	return l.from.Close()
}
