// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

// Package panics handles requests that make the server panic. Such a request is counted, and logged with its stack, at most
// once in an interval. Its client gets 500 if nothing was answered yet, otherwise a broken connection: never something that
// looks like a whole answer. A panic is always a mistake of the server, so there is an alert for one, and tests fail on it.
//
// Answer is for the innermost handlers, where nearly all panics happen. Guard is for the outermost handler: it counts those of
// the handlers between them, which break the connection.
package panics

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"runtime/debug"
	"sync/atomic"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/platform-ai/platform/pkg/server/statuscode"
	"github.com/platform-ai/platform/pkg/sparse"
)

// Message is what the log says of each panic. Tests look for it in the output of servers.
const Message = "A request made the server panic"

// ErrPanic is the error of a request that panicked, for clients.
var ErrPanic = errors.New("this request made the server panic; its log says where")

var total atomic.Int64

// Total returns how many requests have panicked in this process, for tests.
func Total() int64 { return total.Load() }

// Counter counts the panics of one server. A nil Counter counts only for Total.
type Counter struct {
	log   *sparse.Log
	count prometheus.Counter
	// Close unregisters the metric.
	Close func()
}

// New makes a counter. It fails if its metric, which metrics may be nil for, is already registered.
func New(log *sparse.Log, metrics prometheus.Registerer) (*Counter, error) {
	c := &Counter{log: log, Close: func() {}, count: prometheus.NewCounter(prometheus.CounterOpts{
		Namespace: "platform_api", Name: "panics_total", Help: "Requests that made the server panic.",
	})}
	if metrics != nil {
		if err := metrics.Register(c.count); err != nil {
			return nil, fmt.Errorf("metrics of panics: %w", err)
		}
		c.Close = func() { metrics.Unregister(c.count) }
	}
	return c, nil
}

// Found counts and logs what recover returned, and reports whether the request may be answered: not if a handler broke it off
// on purpose. It is called by the deferred func, so that the stack is that of the panic.
func (c *Counter) Found(ctx context.Context, v any) bool {
	if err, ok := v.(error); ok && errors.Is(err, http.ErrAbortHandler) {
		return false
	}
	total.Add(1)
	if c != nil {
		c.count.Inc()
		c.log.Error(ctx, fmt.Errorf("panic: %v", v), Message, "stack", string(debug.Stack()))
	}
	return true
}

// Guard counts the panics of next, and breaks their connections.
func (c *Counter) Guard(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		defer func() { //nolint:contextcheck // the request has it
			if v := recover(); v != nil {
				c.Found(r.Context(), v)
				panic(http.ErrAbortHandler)
			}
		}()
		next.ServeHTTP(w, r)
	})
}

// Answer counts the panics of next. fail answers those whose request was not answered yet.
func (c *Counter) Answer(next http.Handler, fail func(http.ResponseWriter, *http.Request)) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		out := statuscode.NewWriter(w)
		defer func() { //nolint:contextcheck // the request has it
			v := recover()
			if v == nil {
				return
			}
			if !c.Found(r.Context(), v) || out.Code() != 0 {
				panic(http.ErrAbortHandler)
			}
			fail(w, r)
		}()
		next.ServeHTTP(out, r)
	})
}
