// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

// Package router serves the chat-completions and the messages API of many installations on one hostname. The
// namespace of a caller is that of its ServiceAccount token, and the routes file says which installation serves that
// namespace. The router forwards the request to that installation and returns the answer as it arrives. It stores no
// conversations, calls no models and tries no other installation after an error. It is not trusted by the
// installations: each authenticates and authorizes every request again.
//
// A request passes endpoint.go, auth.go, query in this file, header.go and forward.go, in this order.
package router

import (
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	authenticationv1 "k8s.io/client-go/kubernetes/typed/authentication/v1"
	"k8s.io/klog/v2"
	"k8s.io/utils/clock"

	"github.com/platform-ai/platform/pkg/server/cors"
	"github.com/platform-ai/platform/pkg/server/writetimeout"
	"github.com/platform-ai/platform/pkg/sparse"
)

// Config is what a Router needs.
type Config struct {
	// Routes maps namespaces to installations.
	Routes *Routes
	// Reviews checks tokens.
	Reviews authenticationv1.TokenReviewInterface
	// Transport connects to the installations. It must not follow redirects.
	Transport http.RoundTripper
	// Origins are the origins whose pages may use the router, as a browser sends them; empty, or *, allows any.
	Origins []string
	// WriteTimeout is how long a client may take to accept one write or flush. Default: writetimeout.Router.
	WriteTimeout time.Duration
	// Clock is used for all times. Default: the real clock.
	Clock clock.PassiveClock
}

// Router is the HTTP handler of the shared listener. It is safe for concurrent use.
type Router struct {
	routes    atomic.Pointer[Routes]
	reviewer  *reviewer
	transport http.RoundTripper
	endpoints map[string]endpoint
	cors      cors.Policy
	timeout   time.Duration // of one write or flush to a client
	clock     clock.PassiveClock
	metrics   *metrics
	sparse    *sparse.Log // for what callers whom nobody knows can cause
}

var _ http.Handler = (*Router)(nil)

// New makes a router.
func New(c Config) *Router {
	if c.Clock == nil {
		c.Clock = clock.RealClock{}
	}
	if c.WriteTimeout == 0 {
		c.WriteTimeout = writetimeout.Router
	}
	m := newMetrics()
	r := &Router{
		reviewer: newReviewer(c.Reviews, c.Clock, m), transport: c.Transport, endpoints: endpoints(), cors: newCORS(c.Origins),
		timeout: c.WriteTimeout, clock: c.Clock, metrics: m, sparse: sparse.New(c.Clock),
	}
	r.SetRoutes(c.Routes)
	m.current.Set(1)
	return r
}

// SetRoutes replaces the routes for later requests. Requests in progress keep their installation.
func (rt *Router) SetRoutes(routes *Routes) {
	rt.routes.Store(routes)
	rt.metrics.routes.Set(float64(routes.Len()))
}

// Metrics returns the metrics of the router, to be registered by the caller.
func (rt *Router) Metrics() prometheus.Collector { return rt.metrics }

// statusClientGone is used in logs and metrics for a request whose client disconnected before it was answered. It is
// never sent.
const statusClientGone = 499

// exchange is one request and what is known about it.
type exchange struct {
	w        *writer
	r        *http.Request
	id       string
	endpoint endpoint // empty if the path is unknown
	style    style
	caller   caller // empty before authentication
}

// ServeHTTP answers one request. If an answer broke off, the connection is aborted, so that the client does not take
// the answer for complete.
func (rt *Router) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	began := rt.clock.Now()
	rt.metrics.inFlight.Inc()
	defer rt.metrics.inFlight.Dec()
	x := &exchange{w: newWriter(w, r, rt.clock, rt.timeout), r: r, id: requestID(r.Header), style: styleOf(r.URL.Path)}
	x.w.Header().Set(headerRequestID, x.id)
	x.w.Header().Set(headerCacheControl, cacheControl)
	rt.cors.Allow(x.w.Header(), r)

	err := rt.serve(x) //nolint:contextcheck // it has the request
	broken := err != nil && !rt.refuse(x, err)
	x.w.finish()
	rt.done(x, err, broken, rt.clock.Since(began)) //nolint:contextcheck // as above
	if broken {
		panic(http.ErrAbortHandler) // breaks the connection or, on HTTP/2, the stream
	}
}

// serve determines the installation of a request and forwards it.
func (rt *Router) serve(x *exchange) error {
	if cors.IsPreflight(x.r) {
		return rt.answerPreflight(x)
	}
	ep, known := rt.endpoints[x.r.Method+" "+x.r.URL.EscapedPath()]
	if !known {
		return problem{code: http.StatusNotFound, message: "the router does not serve this method and path"}
	}
	x.endpoint = ep
	token, err := credential(x.r.Header, ep.style)
	if err != nil {
		return err
	}
	if x.caller, err = rt.reviewer.review(x.r.Context(), token); err != nil {
		return err
	}
	q, err := query(x.r.URL.RawQuery, x.caller.namespace)
	if err != nil {
		return err
	}
	origin, enabled := rt.routes.Load().origin(x.caller.namespace)
	if !enabled {
		return problem{code: http.StatusForbidden, message: fmt.Sprintf("namespace %q is not enabled here", x.caller.namespace)}
	}
	return rt.forward(x, target(origin, ep.path, q), token)
}

// answerPreflight answers a CORS preflight. It needs no credential.
func (rt *Router) answerPreflight(x *exchange) error {
	path := x.r.URL.EscapedPath()
	for _, method := range corsMethods() {
		if ep, ok := rt.endpoints[method+" "+path]; ok {
			x.endpoint = endpoint{style: ep.style, method: http.MethodOptions, path: ep.path}
			rt.cors.Preflight(x.w.Header())
			x.w.WriteHeader(http.StatusNoContent)
			return nil
		}
	}
	return problem{code: http.StatusNotFound, message: "the router does not serve this path"}
}

// refuse answers with an error, unless an answer has begun or the client has disconnected.
func (rt *Router) refuse(x *exchange, err error) bool {
	p, own := errors.AsType[problem](err)
	if !own || x.w.status.Code() != 0 {
		return false
	}
	writeProblem(x.w, x.style, p)
	return true
}

// query returns the query for the installation: that of the client, with the namespace of its token. A client may
// name only that namespace.
func query(raw, namespace string) (url.Values, error) {
	q, err := url.ParseQuery(raw)
	if err != nil {
		return nil, problem{code: http.StatusBadRequest, message: "the query is malformed"}
	}
	for _, named := range q["namespace"] {
		if named != namespace {
			return nil, problem{
				code: http.StatusBadRequest, message: fmt.Sprintf("namespace: the credential belongs to namespace %q; leave the parameter out", namespace),
			}
		}
	}
	q.Set("namespace", namespace)
	return q, nil
}

// target returns the URL of a request to an installation. Only the query comes from the client.
func target(origin *url.URL, path string, q url.Values) *url.URL {
	return &url.URL{Scheme: origin.Scheme, Host: origin.Host, Path: path, RawQuery: q.Encode()}
}

// done logs and counts a finished request. It does not log paths, queries or headers: they come from the client and
// may contain secrets.
func (rt *Router) done(x *exchange, err error, broken bool, took time.Duration) {
	code := x.w.status.Code()
	if code == 0 {
		code = statusClientGone
	}
	name := x.endpoint.name()
	rt.metrics.done(name, code, broken, took)
	if x.caller == (caller{}) && !broken && code < http.StatusInternalServerError { // anybody can send as many of these as they like
		reason := ""
		if err != nil {
			reason = err.Error()
		}
		rt.sparse.Info(x.r.Context(), "Request of an unknown caller answered", "requestID", x.id, "method", knownMethod(x.r.Method), "endpoint", name,
			"status", code, "reason", reason)
		return
	}
	log := klog.FromContext(x.r.Context()).WithValues("requestID", x.id, "method", knownMethod(x.r.Method), "endpoint", name,
		"namespace", x.caller.namespace, "serviceAccount", x.caller.name, "status", code, "sentBytes", x.w.sent, "duration", took)
	switch {
	case err == nil:
		log.Info("Request served")
	case errors.Is(err, errClient):
		log.Info("The client left or did not read", "reason", cause(err).Error())
	case broken || code == http.StatusServiceUnavailable:
		log.Error(cause(err), "Request failed")
	default:
		log.Info("Request refused", "reason", err.Error())
	}
}
