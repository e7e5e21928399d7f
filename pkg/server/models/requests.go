// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package models

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/utils/clock"
)

// ErrStopping is the cause of the end of requests that outlast the server.
var ErrStopping = errors.New("the server is stopping")

// Requests is a Meter that knows which requests are open, so that a server that stops records their ends before it closes its
// store: it refuses further requests, gives the open ones some time to end, and cancels those that are left. An answer that was
// cancelled is charged like any other that was cut.
type Requests struct {
	meter  Meter
	keeper *Keeper

	mu      sync.Mutex
	open    map[*openRequest]struct{}
	stopped bool
	over    chan struct{} // closed when the rest is cancelled
	ended   chan struct{} // closed when no request is open any more
}

var _ Meter = (*Requests)(nil)

// NewRequests returns Requests that a meter records. keeper is the one that records what is said; nil for none.
func NewRequests(m Meter, keeper *Keeper) *Requests {
	return &Requests{meter: m, keeper: keeper, open: map[*openRequest]struct{}{}, over: make(chan struct{}), ended: make(chan struct{})}
}

// Of returns a Meter whose requests are recorded by another one, and are among the open requests like all others.
func (r *Requests) Of(m Meter) Meter { return requestsOf{r, m} }

// requestsOf are requests that a meter of their own records.
type requestsOf struct {
	*Requests
	meter Meter
}

// Start starts a request, unless the server is stopping.
func (r requestsOf) Start(ctx context.Context, a Asked) (Measurement, error) {
	return r.start(ctx, a, r.meter)
}

// openRequest is a request that is being started, or was.
type openRequest struct {
	of     *Requests
	cancel context.CancelCauseFunc
	Measurement
}

// Start starts a request, unless the server is stopping.
func (r *Requests) Start(ctx context.Context, a Asked) (Measurement, error) {
	return r.start(ctx, a, r.meter)
}

func (r *Requests) start(ctx context.Context, a Asked, by Meter) (Measurement, error) {
	one := &openRequest{of: r, cancel: a.Cancel}
	r.mu.Lock()
	if r.stopped {
		r.mu.Unlock()
		return nil, stopping()
	}
	r.open[one] = struct{}{}
	r.mu.Unlock()
	var err error
	if one.Measurement, err = by.Start(ctx, a); err != nil {
		one.close()
		return nil, err
	}
	return one, nil
}

// stopping is the refusal of a request that would outlast the server.
func stopping() error {
	return fmt.Errorf("%w: %w", ErrStopping, apierrors.NewServiceUnavailable("the server is stopping; ask again"))
}

// End records the end.
func (o *openRequest) End(e Ended) {
	defer o.close()
	o.Measurement.End(e)
}

func (o *openRequest) close() {
	r := o.of
	r.mu.Lock()
	defer r.mu.Unlock()
	if _, open := r.open[o]; !open {
		return
	}
	if delete(r.open, o); r.stopped && len(r.open) == 0 {
		close(r.ended)
	}
}

// Refuse refuses all requests from now on. It is called once.
func (r *Requests) Refuse() {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.stopped = true; len(r.open) == 0 {
		close(r.ended)
	}
}

// Settle waits until all requests have ended, at most for as long as the grace, and cancels the rest. It is called once, after
// Refuse.
func (r *Requests) Settle(c clock.Clock, grace time.Duration) {
	timer := c.NewTimer(grace)
	defer timer.Stop()
	select {
	case <-r.ended:
	case <-timer.C():
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	close(r.over)
	for one := range r.open {
		if one.cancel != nil {
			one.cancel(ErrStopping)
		}
	}
}

// Over is closed when the requests that are left are cancelled.
func (r *Requests) Over() <-chan struct{} { return r.over }

// Ended is closed once Refuse was called and the ends of all requests are recorded.
func (r *Requests) Ended() <-chan struct{} { return r.ended }

// Drain waits until what was said in requests that have ended is recorded.
func (r *Requests) Drain() {
	if r.keeper != nil {
		r.keeper.drain()
	}
}
