// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

// Package intake limits request bodies: whose are read, how long they may be, how many bytes of them the process
// holds at a time, and how long a client may take to send one.
//
// Guard is the outermost handler of a listener. It closes a body to every reader until Admit is called for its
// request. The code that knows the caller and the route calls Admit: the facade for REST requests, the innermost
// filter of the handler chain for all others. So no byte of a body is read for an unknown caller, even if some code
// in between is wrong. Only package door, whose callers prove themselves by what the body is, admits one before. It does so with
// a gate for each door, and in the name of an address.
//
// All bodies together share a budget. A caller may hold at most as much of it as remains free. So a single caller can
// get half of the budget, two callers a third each, and something is always left for the next one.
package intake

import (
	"context"
	"errors"
	"fmt"
	"math"
	"net/http"
	"runtime/debug"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/clock"

	"github.com/platform-ai/platform/pkg/jsonsize"
	"github.com/platform-ai/platform/pkg/metric"
	"github.com/platform-ai/platform/pkg/server/fair"
)

const (
	// MaxJSON is the maximum length of a JSON body, in bytes: that of each request that the API accepts.
	MaxJSON = 15 << 20
	// shortJSON is the length, in bytes, up to which a JSON body may have any number of values. A longer one may have
	// maxValues: decoded values take many times as many bytes as they have in the body, long texts do not.
	shortJSON, maxValues = 3 << 20, 1 << 18
	// MinBudget is the smallest budget, in bytes, with which one caller can send the longest body that any route
	// accepts.
	MinBudget = 32 << 20
	maxBudget = 256 << 20
	// patience is how long a client may take to send a body; for each additional rate bytes it gets another second.
	patience, rate = 30 * time.Second, 64 << 10
	// refusedPatience bounds how long the server waits for the rest of a refused body, so that its client can read
	// the answer.
	refusedPatience = 2 * time.Second
	// retryAfter is the number of seconds after which a client that met a full budget should retry.
	retryAfter = 1
)

// DefaultBudget is an eighth of the process's memory limit (GOMEMLIMIT), but at least 32 MiB and at most 256 MiB.
// Without a memory limit it is 256 MiB.
func DefaultBudget() int64 {
	limit := debug.SetMemoryLimit(-1)
	if limit == math.MaxInt64 {
		return maxBudget
	}
	return min(max(limit/8, MinBudget), maxBudget)
}

// Options configure a Gate. The zero value of every field is usable.
type Options struct {
	// Budget is the maximum number of bytes of bodies held at a time. Default: DefaultBudget.
	Budget int64
	// Patience is how long a client may take to send a body, plus one second for each 64 KiB that has arrived.
	// Default: 30 seconds.
	Patience time.Duration
	// Clock must be the real time, because deadlines of connections are. Default: the real clock.
	Clock clock.PassiveClock
	// Metrics, if set, registers the gate's metrics until Close.
	Metrics prometheus.Registerer
}

// Gate accounts for the bodies of one process. All methods may be called concurrently.
type Gate struct {
	o       Options
	refused *prometheus.CounterVec
	all     metric.Group
	budget  *fair.Share
}

// New makes a gate. It fails if its metrics are already registered.
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
	g := &Gate{o: o, budget: fair.New(o.Budget)}
	g.refused = prometheus.NewCounterVec(prometheus.CounterOpts{
		Namespace: "platform_api", Name: "bodies_refused_total",
		Help: "Request bodies that were not read to their end, by reason: too_large, budget, slow.",
	}, []string{"reason"})
	for _, reason := range []string{"too_large", "budget", "slow"} {
		g.refused.WithLabelValues(reason) // an alert sees only how a series grows
	}
	g.all = metric.Group{g.refused, prometheus.NewGaugeFunc(prometheus.GaugeOpts{
		Namespace: "platform_api", Name: "bodies_held_bytes", Help: "Bytes of request bodies that are read or held.",
	}, func() float64 { return float64(g.Held()) })}
	if o.Metrics != nil {
		if err := o.Metrics.Register(g.all); err != nil {
			return nil, fmt.Errorf("register metrics: %w", err)
		}
	}
	return g, nil
}

// Close unregisters the metrics.
func (g *Gate) Close() {
	if g.o.Metrics != nil {
		g.o.Metrics.Unregister(g.all)
	}
}

// Held returns the number of bytes that are currently accounted for.
func (g *Gate) Held() int64 {
	n, _ := g.budget.Held()
	return n
}

// Guard closes the bodies of all requests to next until Admit opens them.
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

// Admit opens the body of the request that ctx belongs to, up to limit bytes, for a user who is known. It is no error
// if the request has no body, was admitted before or did not pass a Guard. Errors are API errors: 413 if the declared
// length exceeds limit, 429 while the budget is used up. Call done when nothing holds what was read any more.
func Admit(ctx context.Context, user string, limit int64) (done func(), err error) {
	return admit(ctx, user, limit, checks{})
}

// AdmitText is Admit for a body that is text, such as YAML. One that is not UTF-8 is refused with 400 while it is read, whatever it
// declares to be.
func AdmitText(ctx context.Context, user string, limit int64) (done func(), err error) {
	return admit(ctx, user, limit, checks{text: &text{}})
}

// AdmitJSON is AdmitText for a body that is JSON and will be decoded. A body of more than 3 MiB with very many values is refused
// with 413 while it is read.
func AdmitJSON(ctx context.Context, user string, limit int64) (done func(), err error) {
	return admit(ctx, user, limit, checks{values: &jsonsize.Counter{}, text: &text{}})
}

// AdmitObject is AdmitJSON for a body that is one object, or a patch of one. It is refused with 413 while it is read if it exceeds
// jsonsize.Object.
func AdmitObject(ctx context.Context, user string, limit int64) (done func(), err error) {
	return admit(ctx, user, limit, checks{values: &jsonsize.Counter{}, object: true, text: &text{}})
}

// checks are made of a body while it is read.
type checks struct {
	values *jsonsize.Counter // of a body that is JSON; nil for others
	object bool              // it is one object
	text   *text             // of a body that is JSON or YAML; nil for others
}

func admit(ctx context.Context, user string, limit int64, c checks) (done func(), err error) {
	b := bodyOf(ctx)
	if b == nil {
		return func() {}, nil
	}
	if err := b.admit(user, limit, c); err != nil {
		return nil, err
	}
	return b.hold(), nil
}

// TooLarge returns the API error for a body that is longer than limit bytes.
func TooLarge(limit int64) error {
	return &apierrors.StatusError{ErrStatus: metav1.Status{
		Status: metav1.StatusFailure, Code: http.StatusRequestEntityTooLarge, Reason: metav1.StatusReasonRequestEntityTooLarge,
		Message: fmt.Sprintf("the body must be at most %d bytes", limit),
	}}
}

// TooMany returns the API error for the body of an object that has more values than it may have, or deeper ones.
func TooMany() error {
	return &apierrors.StatusError{ErrStatus: metav1.Status{
		Status: metav1.StatusFailure, Code: http.StatusRequestEntityTooLarge, Reason: metav1.StatusReasonRequestEntityTooLarge,
		Message: fmt.Sprintf("the body must have %s", jsonsize.Object),
	}}
}

// tooMany returns the API error for a long JSON body with more values than it may have.
func tooMany() error {
	return &apierrors.StatusError{ErrStatus: metav1.Status{
		Status: metav1.StatusFailure, Code: http.StatusRequestEntityTooLarge, Reason: metav1.StatusReasonRequestEntityTooLarge,
		Message: fmt.Sprintf("the body must be at most %d bytes, or have at most %d values", shortJSON, maxValues),
	}}
}

func notText() error { return apierrors.NewBadRequest("the body must be UTF-8") }

func busy() error {
	return apierrors.NewTooManyRequests("the server already holds as many bytes of request bodies as it may hold in total or for one caller; try again later", retryAfter)
}

func slow(after time.Duration) error {
	return &apierrors.StatusError{ErrStatus: metav1.Status{
		Status: metav1.StatusFailure, Code: http.StatusRequestTimeout, Reason: metav1.StatusReasonTimeout,
		Message: fmt.Sprintf("the body did not arrive in time: a client has %v, and a second more for each %d KiB sent", after, rate>>10),
	}}
}

// errClosed is the error of reading a body before Admit.
var errClosed = errors.New("the body of a request was read before its caller was known")
