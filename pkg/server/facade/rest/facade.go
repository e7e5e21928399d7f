// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

// Package rest serves documented REST paths in front of the handler chain of an API server. A Row maps a path to
// native requests, and describes how parameters and bodies are converted in both directions. The requests pass the
// whole chain with the caller's own credentials, so authentication, authorization, admission, audit and limits are
// the same as for every other client. This package is only the machinery: it contains no endpoints, and needs only an
// http.Handler and the API types.
//
// For example, GET /api/v1/tasks/primes/stream?after=7 becomes a request for
// /apis/core.platform.ai/v1alpha1/namespaces/NS/tasks/primes/stream. A request without a credential is answered with 401
// here, because the chain of a server in a cluster lets anonymous callers read health and discovery.
//
//	row.go       what a row can say
//	route.go     finding the row of a request
//	serve.go     one row: its parameters, its namespace and its answers
//	handler.go   carrying out the native requests of a row
//	query.go     native objects that are made of query parameters
//	call.go      one REST request, and the native requests that it makes
//	body.go      reading the request's body, once its caller is known
//	object.go    JSON bodies on their way to the chain
//	flat.go      bodies that are whole objects
//	replace.go   bodies that replace stored objects
//	fixed.go     members that rows cannot set
//	document.go  JSON answers made of native ones
//	writer.go    answers of the chain on their way to the client
//	envelope.go  the shape of errors
//	page.go      pages of lists
//
// What is streamed natively (events, logs, artifacts, traces, lists) is streamed here too. Only errors and answers
// that a row computes from native ones are held in memory.
package rest

import (
	"cmp"
	"encoding/json"
	"fmt"
	"net/http"

	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/utils/clock"

	"github.com/platform-ai/platform/pkg/server/cors"
	"github.com/platform-ai/platform/pkg/server/panics"
	"github.com/platform-ai/platform/pkg/server/statuscode"
	"github.com/platform-ai/platform/pkg/server/wellformed"
	"github.com/platform-ai/platform/pkg/sparse"
)

// Options configure a Facade.
type Options struct {
	// Clock measures durations and paces heartbeats. Default: the real clock.
	Clock clock.WithTicker
	// Metrics, if set, registers the facade's metrics until Close.
	Metrics prometheus.Registerer
	// Origins are the origins whose pages may read answers, exactly as a browser sends them; empty, or "*", allows
	// any.
	Origins []string
	// TokenHeaders are the headers in which pages may send transaction tokens.
	TokenHeaders []string
	// Namespace, if set, is the only namespace that is served.
	Namespace string
	// Sparse receives the failures of requests. Default: a new sparse log on Clock.
	Sparse *sparse.Log
	// Panics, if set, counts the requests that panic.
	Panics *panics.Counter
	// Authenticate returns the user who makes a request, or "" if unknown, before the request's body is read. If it
	// is nil, only the chain authenticates, after the body was read.
	Authenticate func(*http.Request) (user string)
	// External, if set, returns the type of a request's credential if it is none of this host, and the namespace of its
	// bearer. It need not check the credential, because the chain does.
	External func(*http.Request) (authType, namespace string)
	// NoCore says that the chain does not serve Kubernetes' core API, to which the paths of rows that are Plain belong.
	NoCore bool
	// Document returns the description of the rows, for rows whose answer it is.
	Document func() ([]byte, error)
}

// Facade is an http.Handler. It passes requests for other paths to the chain.
type Facade struct {
	chain   http.Handler
	o       Options
	rows    []Row
	own     map[string]bool // first two path segments and, below /api/v1, the third
	cors    cors.Policy
	metrics *metrics
}

// New puts rows in front of the handler chain of an API server. It fails if its metrics are already registered.
func New(chain http.Handler, rows []Row, o Options) (*Facade, error) {
	if o.Clock == nil {
		o.Clock = clock.RealClock{}
	}
	if o.Sparse == nil {
		o.Sparse = sparse.New(o.Clock)
	}
	f := &Facade{chain: chain, o: o, rows: rows, own: map[string]bool{}, cors: newCORS(o.Origins, o.TokenHeaders), metrics: newMetrics()}
	for _, r := range f.rows {
		if !r.Plain || o.NoCore {
			f.own[family(r.segments())] = true
		}
	}
	if o.Metrics != nil {
		if err := o.Metrics.Register(f.metrics); err != nil {
			return nil, fmt.Errorf("facade: metrics: %w", err)
		}
	}
	return f, nil
}

// Close unregisters the metrics.
func (f *Facade) Close() {
	if f.o.Metrics != nil {
		f.o.Metrics.Unregister(f.metrics)
	}
}

// ServeHTTP serves REST paths and passes all others to the chain. Kubernetes' core API is below /api/v1 too.
func (f *Facade) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if f.owns(r) {
		f.serve(w, r)
		return
	}
	f.chain.ServeHTTP(w, r)
}

// owns reports whether a request is for a REST path, be there a row for it or not.
func (f *Facade) owns(r *http.Request) bool {
	segments, ok := split(r.URL.EscapedPath())
	return ok && f.own[family(segments)]
}

// Alone returns a handler of only the REST paths: every other path is unknown.
func (f *Facade) Alone() http.Handler { return http.HandlerFunc(f.serve) }

// serve does what is common to all rows: what happens before the row is known and after it has answered.
func (f *Facade) serve(w http.ResponseWriter, r *http.Request) {
	began := f.o.Clock.Now()
	out := statuscode.NewWriter(w)
	id := requestID(r)
	out.Header().Set(headerRequestID, id)
	out.Header().Set("Cache-Control", "no-store")
	found, params, err := f.find(r)
	defer func() {
		f.metrics.done(found.Path, r.Method, cmp.Or(out.Code(), http.StatusOK), f.o.Clock.Since(began))
	}()
	defer f.recoverPanic(out, r)
	f.cors.Allow(out.Header(), r)
	if cors.IsPreflight(r) {
		f.cors.Preflight(out.Header())
		out.WriteHeader(http.StatusNoContent)
		return
	}
	switch {
	case !f.presents(r) && (err == nil || f.owns(r)): // strangers do not learn which paths there are
		err = restError{code: http.StatusUnauthorized}
	case wellformed.Check(r) != nil:
		err = (&call{w: out}).asREST(wellformed.Check(r))
	case err == nil:
		err = (&call{f: f, row: found, w: out, r: r, query: wellformed.Query(r), params: params, id: id}).serve(found) //nolint:contextcheck // native requests have the context of r
	}
	if err != nil {
		f.fail(out, r, err)
	}
}

// own reports whether an answer does not come from the chain.
func (a Answer) own() bool { return a.Document || a.Unsupported != "" }

// describe gives an answer that does not come from the chain.
func (f *Facade) describe(w http.ResponseWriter, a Answer) error {
	if a.Unsupported != "" || f.o.Document == nil {
		return restError{code: http.StatusNotImplemented, message: a.Unsupported}
	}
	data, err := f.o.Document()
	if err != nil {
		return fmt.Errorf("description of the rows: %w", err)
	}
	reply(w, http.StatusOK, json.RawMessage(data))
	return nil
}

// recoverPanic answers if a row panicked. An aborted answer stays aborted, so that its client notices.
func (f *Facade) recoverPanic(w *statuscode.Writer, r *http.Request) {
	v := recover()
	if v == nil {
		return
	}
	if !f.o.Panics.Found(r.Context(), v) || w.Code() != 0 {
		panic(http.ErrAbortHandler)
	}
	f.fail(w, r, restError{code: http.StatusInternalServerError})
}
