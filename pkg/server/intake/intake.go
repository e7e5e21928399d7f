// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

// Package intake decides whose request bodies are read, how long they may be, how many bytes of them the process holds at
// a time, and how long a client may take to send one.
//
// Guard is the outermost handler of a listener. A body that came through it is closed to every reader until Admit was
// called for its request, which whoever knows the caller and the route does: the facade for REST requests, the innermost
// filter of the handler chain for all others. So no byte of a body is read for a caller that is not known, whatever is
// forgotten in between.
//
// All bodies together share a budget. A caller may hold as much of it as is free beside: one caller alone gets half of it,
// two a third each, and there is always something left for the next.
package intake

import (
	"context"
	"errors"
	"fmt"
	"math"
	"net/http"
	"runtime/debug"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/clock"

	"github.com/platform-ai/platform/pkg/metric"
)

const (
	// MinBudget is the least budget with which one caller can send the longest body that any route takes.
	MinBudget = 32 << 20
	maxBudget = 256 << 20
	// patience is how long a client may take for a body, and rate how many bytes a second it must send beyond that.
	patience, rate = 30 * time.Second, 64 << 10
	// refusedPatience bounds how long the rest of a refused body is waited for, so that its client can read the answer.
	refusedPatience = 2 * time.Second
	// retryAfter is what a client that met a full budget is told to wait, in seconds.
	retryAfter = 1
)

// DefaultBudget is an eighth of the memory that the process is told to stay in (GOMEMLIMIT), from 32 to 256 MiB; 256 MiB
// where it was told nothing.
func DefaultBudget() int64 {
	limit := debug.SetMemoryLimit(-1)
	if limit == math.MaxInt64 {
		return maxBudget
	}
	return min(max(limit/8, MinBudget), maxBudget)
}

// Options configure a Gate. The zero value of every field is usable.
type Options struct {
	// Budget is how many bytes of bodies are held at a time. Default: DefaultBudget.
	Budget int64
	// Patience is how long a client may take to send a body, beside a second for each 64 KiB that arrived. Default:
	// 30 seconds.
	Patience time.Duration
	// Clock is the real time: deadlines of connections are. Default: the real clock.
	Clock clock.PassiveClock
	// Metrics, where set, gets the gate's metrics until Close.
	Metrics prometheus.Registerer
}

// Gate accounts for the bodies of one process. All methods may be called concurrently.
type Gate struct {
	o       Options
	refused *prometheus.CounterVec
	all     metric.Group

	mu    sync.Mutex
	held  int64
	users map[string]int64
}

// New makes a gate. It fails where its metrics are registered already.
func New(o Options) (*Gate, error) {
	if o.Budget == 0 {
		o.Budget = DefaultBudget()
	}
	if o.Clock == nil {
		o.Clock = clock.RealClock{}
	}
	if o.Patience == 0 {
		o.Patience = patience
	}
	g := &Gate{o: o, users: map[string]int64{}}
	g.refused = prometheus.NewCounterVec(prometheus.CounterOpts{
		Namespace: "platform_api", Name: "bodies_refused_total",
		Help: "Request bodies that were not read to their end, by reason: too_large, budget, slow.",
	}, []string{"reason"})
	g.all = metric.Group{g.refused, prometheus.NewGaugeFunc(prometheus.GaugeOpts{
		Namespace: "platform_api", Name: "bodies_held_bytes", Help: "Bytes of request bodies that are read or held.",
	}, func() float64 { return float64(g.Held()) })}
	if o.Metrics != nil {
		if err := o.Metrics.Register(g.all); err != nil {
			return nil, fmt.Errorf("intake: metrics: %w", err)
		}
	}
	return g, nil
}

// Close takes the metrics back.
func (g *Gate) Close() {
	if g.o.Metrics != nil {
		g.o.Metrics.Unregister(g.all)
	}
}

// Held is how many bytes are accounted for now.
func (g *Gate) Held() int64 {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.held
}

// acquire takes n bytes of the budget for a user.
func (g *Gate) acquire(user string, n int64) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.users[user]+n > g.o.Budget-g.held {
		return false
	}
	if n > 0 {
		g.held += n
		g.users[user] += n
	}
	return true
}

func (g *Gate) release(user string, n int64) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.held -= n
	if g.users[user] -= n; g.users[user] == 0 {
		delete(g.users, user)
	}
}

// Guard closes the bodies of all requests that next gets until Admit opens them.
func (g *Gate) Guard(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Body == nil || r.Body == http.NoBody || r.ContentLength == 0 || bodyOf(r.Context()) != nil {
			next.ServeHTTP(w, r)
			return
		}
		b := &body{gate: g, in: r.Body, declared: r.ContentLength, conn: http.NewResponseController(w), began: g.o.Clock.Now(), holders: 1}
		defer b.end()
		r = r.WithContext(context.WithValue(r.Context(), bodyKey{}, b))
		r.Body = b
		next.ServeHTTP(&writer{ResponseWriter: w, body: b, http1: r.ProtoMajor == 1}, r)
	})
}

// Admit opens the body of the request whose context it gets, for a user who is known, up to limit bytes. A request without
// a body, and one that was admitted before, is no error; neither is one that came through no Guard. Errors are API errors:
// 413 for a body that is declared longer than limit, 429 while the budget is used up. done is called when nothing holds what
// was read any more.
func Admit(ctx context.Context, user string, limit int64) (done func(), err error) {
	b := bodyOf(ctx)
	if b == nil {
		return func() {}, nil
	}
	if err := b.admit(user, limit); err != nil {
		return nil, err
	}
	return b.hold(), nil
}

// TooLarge is the refusal of a body that is longer than limit bytes.
func TooLarge(limit int64) error {
	return &apierrors.StatusError{ErrStatus: metav1.Status{
		Status: metav1.StatusFailure, Code: http.StatusRequestEntityTooLarge, Reason: metav1.StatusReasonRequestEntityTooLarge,
		Message: fmt.Sprintf("the body must be at most %d bytes", limit),
	}}
}

func busy() error {
	return apierrors.NewTooManyRequests("the server holds as many bytes of request bodies as it may, or as it may for one caller; try again later", retryAfter)
}

func slow(after time.Duration) error {
	return &apierrors.StatusError{ErrStatus: metav1.Status{
		Status: metav1.StatusFailure, Code: http.StatusRequestTimeout, Reason: metav1.StatusReasonTimeout,
		Message: fmt.Sprintf("the body did not arrive in time: a client has %v, and a second more for each %d KiB sent", after, rate>>10),
	}}
}

// errClosed is what a reader gets that comes before Admit.
var errClosed = errors.New("intake: the body of a request is read before its caller is known")
