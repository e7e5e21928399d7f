// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

// Package compat serves the APIs of model vendors, so that their clients can use the Providers of a namespace without
// knowing a vendor's key. A request to a Provider of the same protocol is passed on as it is: only the name of the
// model and the credentials are replaced, and the answer comes back byte for byte.
//
//	compat.go    the handler, before and inside the handler chain
//	route.go     the paths
//	exchange.go  one request: who, where, which model
//	state.go     what the vendor would keep between requests
//	outside.go   input that a request names and does not have
//	forward.go   asking one candidate after the other
//	relay.go     the answer on its way to the client
//	event.go     server-sent events
//	object.go    JSON objects whose members are replaced in place
//	scan.go      finding their members
//	request.go   what is checked and changed in a request
//	translate.go asking Providers of another protocol
//	content.go   texts and images in the form of each API
//	choice.go    the choice of tools, and how much a model thinks
//	said.go      what an answer's header says about what was left out or passed over
//	brings.go    whether a client brings tools of its own
//	tools.go     whether a request gets the server's tools, and which
//	reach.go     tools that this server calls as runs do: of the web, and Tool objects
//	turn.go      the loop of a model and the server's tools
//	strip.go     which parts of a client's conversation the loop reads
//	goal.go      what a model with the server's tools says about its goal
//	chat.go      reading chat completions
//	messages.go  reading messages
//	responses.go reading responses
//	chatform.go  answers in the form of chat completions
//	messageform.go answers in the form of messages
//	respond.go   answers in the form of responses
//	usage.go     what answers say about the use of tokens
//	meter.go     counting that use
//	problem.go   errors, in the form of the vendor whose path was called
//	failure.go   the failures of vendors, in the form of each API
//	list.go      the list of models
//	estimate.go  counts of tokens where the vendor does not count them
//	home.go      credentials, and the namespaces that they name
//	task.go      requests of the coding agents of tasks
//
// The paths are outside the Kubernetes API. Wrap gives each request to the handler chain as a create of chats (or a
// list of providers) in its namespace, so that the chain authenticates and authorizes it, audits it and opens its body.
// Inner, the innermost handler, then recognises the request by its context and serves it.
//
// The coding agent of a task has the same paths below the subresource proxy of its task, which its worker alone may use (task.go).
//
// What becomes of a request, in the order in which it is decided:
//
//   - With the server's tools it is answered by a loop of a model and these tools (tools.go decides, turn.go is the loop).
//   - At a Provider of the same protocol it is passed on (forward.go, request.go, relay.go).
//   - At a Provider of another protocol it is translated, or refused (translate.go, package llm/members).
//
// An answer may take as long as the vendor takes, so the chain of these requests has no time limits and does not count them among
// the requests in flight (server/apiserver). Instead, Options.Requests are answered at a time, and a caller may have as many as
// are still free (package fair); others get 429. One write to a client may take Options.WriteTimeout (package writetimeout).
//
// No request goes on with what a vendor keeps (state.go). Failures are told in the form of the client's API (failure.go).
//
//large:imports it is where three protocols of vendors meet the models, the tools and the limits of this server
package compat

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/endpoints/request"
	"k8s.io/utils/clock"

	"github.com/platform-ai/platform/pkg/apis/core/v1alpha1"
	"github.com/platform-ai/platform/pkg/server/chat"
	"github.com/platform-ai/platform/pkg/server/chat/toolbox"
	"github.com/platform-ai/platform/pkg/server/cors"
	"github.com/platform-ai/platform/pkg/server/facade/rest"
	"github.com/platform-ai/platform/pkg/server/fair"
	"github.com/platform-ai/platform/pkg/server/models"
	"github.com/platform-ai/platform/pkg/server/panics"
	"github.com/platform-ai/platform/pkg/server/wellformed"
	"github.com/platform-ai/platform/pkg/server/writetimeout"
	"github.com/platform-ai/platform/pkg/sparse"
	"github.com/platform-ai/platform/pkg/tool"
)

// MaxBody is the maximum size of a request, in bytes.
const MaxBody = 15 << 20

const (
	headerRequestID = "X-Request-Id"
	// headerTools switches the tools of the server off or on; its alias is read, too. Answers say whether they were on.
	headerTools, headerToolsAlias = "X-Platform-Tools", "X-Orka-Tools"
	toolsDisabled, toolsEnabled   = "disabled", "enabled"

	// defaultRequests is how many requests are answered at a time.
	defaultRequests = 1024
)

// Options configure a Handler. Models is required.
type Options struct {
	Models *models.Models
	// Meter, if set, records the use of models. Requests and tokens are counted in metrics in any case.
	Meter models.Meter
	// Metrics, if set, registers the metrics until Close.
	Metrics prometheus.Registerer
	// Tools makes the server's tools, and turns with them have Limits; nil, or Limits.Enabled unset, means that requests are only
	// passed on.
	Tools  *toolbox.Maker
	Limits chat.Limits
	// DropClientTools gives requests of clients with tools of their own the server's tools instead, unless a header switches
	// these off. Otherwise such requests are passed on, unless a header asks for the server's tools.
	DropClientTools bool
	// Judge puts a call of a tool to the policies that judge those of runs. It is required with Tools. An error says that
	// nobody could decide.
	Judge func(ctx context.Context, caller user.Info, namespace, tool string, arguments json.RawMessage) (v1alpha1.ToolCallStatus, error)
	// Reach is what the tools that this server calls itself may reach.
	Reach Reach
	// Origins are the origins whose pages may read answers; empty, or "*", allows any.
	Origins []string
	// TokenHeaders are the headers in which pages may send transaction tokens.
	TokenHeaders []string
	// Task, if set, lets the coding agent of a task ask its models. ctx has the namespace and the caller, for whom the guard of tasks
	// decides. Errors are API errors.
	Task func(ctx context.Context, name string) (*Run, error)
	// Namespace, if set, is the only namespace that is served.
	Namespace string
	// External, if set, returns the type of a request's credential if it is none of this host, and the namespace of its
	// bearer.
	External func(*http.Request) (authType, namespace string)
	// Requests is how many requests are answered at a time; a caller may have as many as are still free. Default: 1024.
	Requests int
	// WriteTimeout is how long a client may take to accept what it was sent. Default: writetimeout.Server.
	WriteTimeout time.Duration
	// Sparse receives the failures of requests. Default: a new sparse log on Clock.
	Sparse *sparse.Log
	// Panics, if set, counts the requests that panic.
	Panics *panics.Counter
	// Clock measures durations. Default: the real clock.
	Clock clock.WithTickerAndDelayedExecution
}

// Handler serves the vendors' APIs.
type Handler struct {
	o     Options
	cors  cors.Policy
	slots *fair.Share // requests that are answered
	own   *PrometheusMeter
	meter models.Meter
	homes homes

	fetch, search tool.Tool
	reaching      chan struct{} // calls of tools that reach the network
}

// New makes a handler. It fails if its metrics are already registered.
func New(o Options) (*Handler, error) {
	if o.Models == nil {
		return nil, errors.New("the option Models is required")
	}
	if o.Tools != nil && o.Judge == nil {
		return nil, errors.New("the option Judge is required with Tools")
	}
	if o.Clock == nil {
		o.Clock = clock.RealClock{}
	}
	if o.Sparse == nil {
		o.Sparse = sparse.New(o.Clock)
	}
	if o.Requests == 0 {
		o.Requests = defaultRequests
	}
	if o.WriteTimeout == 0 {
		o.WriteTimeout = writetimeout.Server
	}
	h := &Handler{o: o, slots: fair.New(int64(o.Requests)), cors: newCORS(o.Origins, o.TokenHeaders), own: NewPrometheusMeter(), homes: newHomes()}
	h.fetch, h.search = newWeb(o.Reach)
	h.reaching = make(chan struct{}, maxReaching)
	h.meter = h.own
	if o.Meter != nil {
		h.meter = models.Meters{o.Meter, h.own}
	}
	if o.Metrics != nil {
		if err := o.Metrics.Register(h.own); err != nil {
			return nil, fmt.Errorf("register metrics: %w", err)
		}
	}
	return h, nil
}

// Close unregisters the metrics.
func (h *Handler) Close() {
	if h.o.Metrics != nil {
		h.o.Metrics.Unregister(h.own)
	}
}

// Wrap serves the vendors' paths with the help of the chain, whose innermost handler is Inner. Requests for other
// paths go to next.
func (h *Handler) Wrap(chain, next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !owns(r.URL.Path) {
			next.ServeHTTP(w, r)
			return
		}
		h.enter(w, r, chain)
	})
}

// callKey is the key of a *call in the context of a request on its way through the chain.
type callKey struct{}

func callOf(ctx context.Context) *call {
	c, _ := ctx.Value(callKey{}).(*call)
	return c
}

// IsCall reports whether a request on its way through the chain is one of Wrap. Such a request has no deadline, and its
// body may have MaxBody bytes.
func IsCall(ctx context.Context) bool { return callOf(ctx) != nil }

// call is a request on its way through the chain.
type call struct {
	route     route
	path      string // as the client wrote it
	query     url.Values
	namespace string
	task      string // empty for a request of no task
	id        string
	header    http.Header // of the client
	served    bool        // the request has reached Inner
}

// enter does everything that needs no identity, and then gives the request to the chain.
func (h *Handler) enter(w http.ResponseWriter, r *http.Request, chain http.Handler) {
	id := rest.RequestID(r)
	style := styleOf(r.URL.Path)
	header := w.Header()
	header.Set(headerRequestID, id)
	header.Set("Cache-Control", "private, no-store")
	header.Set("X-Content-Type-Options", "nosniff")
	h.cors.Allow(header, r)
	if cors.IsPreflight(r) {
		h.cors.Preflight(header)
		w.WriteHeader(http.StatusNoContent)
		return
	}
	out := &answer{ResponseWriter: w, style: style}
	defer h.recoverPanic(out, r)
	c, err := h.begin(r, id)
	if err != nil {
		h.fail(r.Context(), out.direct(), style, err)
		return
	}
	out.call = c
	chain.ServeHTTP(out, c.native(r))
	out.finish()
}

// begin finds the route and the namespace of a request.
func (h *Handler) begin(r *http.Request, id string) (*call, error) {
	found, err := find(r.Method, r.URL.Path)
	if err != nil {
		return nil, err
	}
	if err := h.presents(r); err != nil {
		return nil, err
	}
	if err := wellformed.Check(r); err != nil {
		return nil, err
	}
	c := &call{route: found, path: r.URL.Path, query: wellformed.Query(r), id: id, header: r.Header}
	if c.namespace, c.task, _ = ofTask(c.path); c.task != "" {
		return c, nil
	}
	c.namespace, err = h.namespace(r, c.query)
	return c, err
}

// ofVendor returns the parameters of the query that are not this server's.
func (c *call) ofVendor() url.Values {
	query := maps.Clone(c.query)
	delete(query, "namespace")
	delete(query, "agent")
	return query
}

// native returns the request as the chain sees it.
func (c *call) native(r *http.Request) *http.Request {
	out := r.Clone(context.WithValue(r.Context(), callKey{}, c))
	rest.Authorize(out)
	for _, name := range []string{"Accept-Encoding", "Origin"} {
		out.Header.Del(name)
	}
	out.Header.Set("Accept", "application/json")
	out.Header.Set("Audit-ID", c.id)
	out.URL = &url.URL{Path: "/apis/" + v1alpha1.SchemeGroupVersion.String() + "/namespaces/" + c.namespace + "/" + c.route.resource}
	if c.task != "" {
		out.URL.Path = c.path
	}
	out.RequestURI = out.URL.RequestURI()
	return out
}

// Inner is the innermost handler of the chain. It serves the requests of Wrap and passes all others on.
func (h *Handler) Inner(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		c := callOf(r.Context())
		if c == nil {
			next.ServeHTTP(w, r)
			return
		}
		c.served = true
		caller, ok := request.UserFrom(r.Context())
		if !ok {
			h.fail(r.Context(), w, c.route.style, problem{code: http.StatusUnauthorized})
			return
		}
		x := &exchange{h: h, w: w, r: r, call: c, caller: caller, meter: h.meter}
		if err := x.serve(); err != nil { //nolint:contextcheck // an exchange has the context of its request
			h.fail(r.Context(), w, c.route.style, err)
		}
	})
}

// recoverPanic answers if the handler panicked outside of the chain. An aborted answer stays aborted.
func (h *Handler) recoverPanic(w *answer, r *http.Request) {
	v := recover()
	if v == nil {
		return
	}
	if !h.o.Panics.Found(r.Context(), v) || w.sent {
		panic(http.ErrAbortHandler)
	}
	h.fail(r.Context(), w.direct(), w.style, problem{code: http.StatusInternalServerError})
}
