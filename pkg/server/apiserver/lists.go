// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package apiserver

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apiserver/pkg/endpoints/request"
	genericapiserver "k8s.io/apiserver/pkg/server"

	"github.com/platform-ai/platform/pkg/metric"
	"github.com/platform-ai/platform/pkg/server/fair"
	"github.com/platform-ai/platform/pkg/storage/object"
)

const (
	// listWait is how long a list waits for room. Its request has a minute in all.
	listWait = 30 * time.Second
	// retryList is when a client that timed out waiting should retry, in seconds.
	retryList = 5
	// tableRow is how many bytes a table takes for each object. Lists of objects are encoded piece by piece, but tables as a whole.
	tableRow = 4 << 10
)

// Lists bounds the memory of the lists that are answered at the same time: others wait. A list waits before it reads anything, and keeps
// its share until its client has taken the last byte. A user has at most as much as is free, so one user's slow clients hold up nobody
// else. Small lists (package object) need no share, and neither do watches that begin with the present state, which are read and sent in
// pieces. All methods may be called concurrently.
type Lists struct {
	room    *fair.Queue
	refused prometheus.Counter
	// close unregisters the metrics.
	close func()
}

// NewLists makes the bound for a number of bytes. It fails if its metrics, which metrics may be nil for, are already registered.
func NewLists(budget int64, metrics prometheus.Registerer) (*Lists, error) {
	l := &Lists{close: func() {}, room: fair.NewQueue(budget), refused: prometheus.NewCounter(prometheus.CounterOpts{
		Namespace: "platform_api", Name: "lists_refused_total", Help: "Lists that got 429 because they timed out waiting for memory.",
	})}
	gauge := func(name, help string, value func() float64) prometheus.Collector {
		return prometheus.NewGaugeFunc(prometheus.GaugeOpts{Namespace: "platform_api", Name: name, Help: help}, value)
	}
	all := metric.Group{
		l.refused,
		gauge("lists_held_bytes", "Bytes that the lists being answered may take.", func() float64 { n, _ := l.room.Held(); return float64(n) }),
		gauge("lists_waiting", "Lists that wait for memory.", func() float64 { _, n := l.room.Held(); return float64(n) }),
	}
	if metrics != nil {
		if err := metrics.Register(all); err != nil {
			return nil, fmt.Errorf("lists: metrics: %w", err)
		}
		l.close = func() { metrics.Unregister(all) }
	}
	return l, nil
}

// Close unregisters the metrics.
func (l *Lists) Close() { l.close() }

// addLists gives each list its share.
func (c *Config) addLists() {
	if c.Lists == nil {
		return
	}
	chain := c.Generic.BuildHandlerChainFunc
	c.Generic.BuildHandlerChainFunc = func(api http.Handler, g *genericapiserver.Config) http.Handler {
		return chain(c.Lists.bound(api), g)
	}
}

// bound gives each request that lists objects a share, which it has until it is answered.
func (l *Lists) bound(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		info, ok := request.RequestInfoFrom(r.Context())
		if !ok || !info.IsResourceRequest || info.Verb != "list" && info.Verb != "deletecollection" {
			next.ServeHTTP(w, r)
			return
		}
		share := &listShare{of: l}
		if who, known := request.UserFrom(r.Context()); known {
			share.user = who.GetName()
		}
		if strings.Contains(r.Header.Get("Accept"), "as=Table") {
			share.each = tableRow
		}
		defer share.end()
		next.ServeHTTP(w, r.WithContext(object.WithRoom(r.Context(), share)))
	})
}

// listShare is what one request has of the room for lists. It is used by one goroutine.
type listShare struct {
	of   *Lists
	user string
	each int64
	held int64 // by all lists of the request
	last int64 // by the last one
}

var _ object.Room = (*listShare)(nil)

// Each returns the bytes of a row of the answer.
func (s *listShare) Each() int64 { return s.each }

// Take waits for room. A request that has some already does not wait for more, because requests that wait for each other would
// do so for ever.
func (s *listShare) Take(ctx context.Context, n int64) error {
	s.last = 0
	if s.held > 0 {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, listWait)
	defer cancel()
	held, err := s.of.room.Acquire(ctx, s.user, n)
	if err != nil {
		s.of.refused.Inc()
		return apierrors.NewTooManyRequests("the server answers as many large lists as its memory permits; ask for pages (limit), or try again later", retryList)
	}
	s.held, s.last = held, held
	return nil
}

// Keep gives back what the last list does not use.
func (s *listShare) Keep(n int64) {
	if back := s.last - n; back > 0 {
		s.of.room.Release(s.user, back)
		s.held, s.last = s.held-back, n
	}
}

func (s *listShare) end() {
	if s.held > 0 {
		s.of.room.Release(s.user, s.held)
		s.held, s.last = 0, 0
	}
}
