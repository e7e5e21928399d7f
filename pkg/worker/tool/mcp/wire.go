// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package mcp

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"maps"
	"mime"
	"net/http"
	"net/http/httptrace"
	"slices"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/platform-ai/platform/pkg/egress"
	"github.com/platform-ai/platform/pkg/tool"
	"github.com/platform-ai/platform/pkg/worker/toolkit"
)

const (
	// maxRedirects is how many redirects a request follows.
	maxRedirects = 10
	// maxRefusal is how much of an answer that is no success is read, in bytes.
	maxRefusal = 64 << 10
)

// Methods and headers of the protocol.
const (
	methodDiscover = "server/discover"
	methodCall     = "tools/call"
	methodPing     = "ping"

	headerSession = "Mcp-Session-Id"
	headerVersion = "Mcp-Protocol-Version"
)

// wire carries the requests of one session. It limits what the server sends before anything is decoded, adds headers,
// and ends everything with the session, because the SDK detaches some of its requests from the caller's context. For each
// request of the SDK it reads until the answer is there, so the SDK sees one JSON message or none.
type wire struct {
	server *server
	next   *http.Transport
	life   context.Context //nolint:containedctx // ends with the session
	stop   context.CancelCauseFunc

	// sent is set once a part of the call has left.
	sent atomic.Bool
	// replies are the answers to requests of the server that are on their way.
	replies sync.WaitGroup

	mu   sync.Mutex
	made bool // the call is being made
	left int  // bytes that the server may still send
	what string
	// asked is how many requests the server has sent.
	asked int
	// approval is the id of the approval of the call, once the call is made.
	approval string
	// last is how the last request ended, and from the call on how the call did.
	last ending
	// lost is set once the server has said that it does not know the session.
	lost bool
}

// ending is how a request ended: what the server answered, or why there is no answer.
type ending struct {
	status int
	broken error
	// said is the text of an answer that is no success.
	said string
}

func newWire(life context.Context, stop context.CancelCauseFunc, s *server) *wire {
	next := s.options.Guard.Transport()
	next.ResponseHeaderTimeout = 0 // the time of the whole session is limited
	return &wire{
		server: s, next: next, life: life, stop: stop,
		left: maxDiscovery, what: "the server of " + s.name + " sends more than 2 MiB before the tool is found",
	}
}

// calling limits what the server may send from now on to n bytes; what is the error for more. From now on the call names
// its approval, by which a server can recognise a repetition.
func (w *wire) calling(n int, what string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.left, w.what, w.approval, w.made = n, what, tool.ApprovalOf(w.life), true
}

// ended returns how the last request ended, and whether the session is lost.
func (w *wire) ended() (last ending, lost bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.last, w.lost
}

func (w *wire) note(sent outgoing, e ending) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if !w.made || sent.Method == methodCall {
		w.last = e
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

// outgoing is what a message of the SDK is. ID is empty for one that gets no answer.
type outgoing struct {
	ID     json.RawMessage `json:"id"`
	Method string          `json:"method"`
}

func outgoingOf(req *http.Request) (o outgoing) {
	if req.GetBody == nil {
		return o
	}
	body, err := req.GetBody()
	if err != nil {
		return o
	}
	defer func() { _ = body.Close() }()
	_ = json.NewDecoder(body).Decode(&o) // what cannot be read gets no answer
	return o
}

// RoundTrip sends a message of the SDK, and returns the answer once it is complete.
func (w *wire) RoundTrip(req *http.Request) (*http.Response, error) {
	sent := outgoingOf(req)
	if sent.Method != methodDiscover {
		return w.exchange(req, sent) //nolint:contextcheck // the context is the request's
	}
	// Servers of earlier versions answer this request in ways of their own, or never. Whatever cannot be used is a refusal
	// for the SDK, which then begins a session as earlier versions do.
	ctx, cancel := context.WithCancel(req.Context())
	defer cancel()
	defer w.server.options.Clock.AfterFunc(w.server.discovery(), cancel).Stop()
	res, err := w.exchange(req.WithContext(ctx), sent) //nolint:contextcheck // the context is the request's
	if err != nil && w.life.Err() == nil && req.Context().Err() == nil {
		return &http.Response{StatusCode: http.StatusBadRequest, Header: http.Header{}, Body: http.NoBody, Request: req}, nil
	}
	return res, err
}

// exchange sends a message and reads its answer.
func (w *wire) exchange(req *http.Request, sent outgoing) (*http.Response, error) {
	res, err := w.send(req, sent.Method == methodCall)
	if err != nil {
		w.note(sent, ending{broken: err})
		return nil, err
	}
	var answer []byte
	e := ending{status: res.StatusCode}
	x := &exchange{wire: w, request: req, id: sent.ID, session: res.Header.Get(headerSession)}
	switch {
	case e.status < http.StatusOK || e.status >= http.StatusMultipleChoices:
		answer, e.said, err = x.refusal(res)
		w.forgotten(req, e.status)
	case len(sent.ID) > 0:
		answer, err = x.answer(res)
	}
	_ = res.Body.Close()
	e.broken = err
	w.note(sent, e)
	if err != nil {
		return nil, err
	}
	if answer != nil {
		res.Header.Set("Content-Type", "application/json")
	}
	res.Body, res.ContentLength = io.NopCloser(bytes.NewReader(answer)), int64(len(answer))
	return res, nil
}

// forgotten notes that the server does not know the session: the protocol has status 404 for that.
func (w *wire) forgotten(req *http.Request, status int) {
	if status != http.StatusNotFound || req.Method != http.MethodPost || req.Header.Get(headerSession) == "" {
		return
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.lost = true
}

// send sends a request. What is read of the answer's body counts; the body must be closed.
func (w *wire) send(req *http.Request, call bool) (*http.Response, error) {
	ctx, cancel := context.WithCancel(req.Context())
	unlink := context.AfterFunc(w.life, cancel) //nolint:contextcheck // the session may end before the request
	release := func() { unlink(); cancel() }
	if call {
		ctx = httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{WroteHeaderField: func(string, []string) { w.sent.Store(true) }})
	}
	req = req.Clone(ctx)
	w.headers(req, call)
	res, err := w.server.options.Hosts.Transport(w.next).RoundTrip(req)
	if err != nil {
		release()
		return nil, err
	}
	res.Body = &limited{wire: w, from: res.Body, release: release}
	return res, nil
}

func (w *wire) headers(req *http.Request, call bool) {
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
	if approval != "" && call {
		req.Header.Set("Idempotency-Key", approval)
		req.GetBody = nil // or net/http repeats a request with this header that got no answer on a connection that was kept
	}
	if trace := w.server.options.Traceparent; trace != "" {
		req.Header.Set("Traceparent", trace)
	}
	req.Header.Set("User-Agent", "platform-tool/1.0")
}

// refusal reads an answer that is no success: the protocol's message in it, if there is one, and the text that it has for
// people.
func (x *exchange) refusal(res *http.Response) (answer []byte, said string, err error) {
	raw, _, err := toolkit.ReadAtMost(res.Body, maxRefusal)
	if err != nil {
		if x.wire.life.Err() != nil {
			return nil, "", err
		}
		return nil, "", nil // the status is all that arrived
	}
	kind := res.Header.Get("Content-Type")
	raw = toolkit.UTF8(raw, kind)
	answer, err = x.take(raw)
	if err != nil {
		return nil, "", err
	}
	if answer != nil {
		return answer, errorText(answer), nil
	}
	if media, _, _ := mime.ParseMediaType(kind); media == "text/html" {
		return nil, "", nil // a page for a browser
	}
	return nil, strings.TrimSpace(string(raw)), nil
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
