// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

// Package modelgate decides whether a model request may begin now: by the rate limits of its Provider and its Agent,
// and by the token budgets of its task and of the tasks above it. The caller asks before it stores the start of a
// request and settles the request once its end is stored.
//
// The rules:
//
//   - A rate limit holds for every period of 60 seconds, over all runs that share the Provider or the Agent.
//   - Tokens are reserved by an estimate when a request begins, and settled by what its end reports. A request whose
//     tokens are not reported keeps its estimate.
//   - A request that must wait is refused with the time until its turn, and asks again after at most 15 seconds. Its
//     task then holds a place in the queue of the limit, with one place for each task. The queue goes round the namespaces:
//     the one that has used least of the limit within the period, in relation to its weight, is next, and within a
//     namespace who came first. A task that does not come back in time loses its place.
//   - A request that alone exceeds a limit of tokens begins when nothing else is within the period.
//   - A request whose estimate exceeds what is left of a budget is refused for good.
//
// The append of ModelRequestStarted is the place to ask, because a worker waits for its answer before it sends the request.
// So limits cost no request of their own. The gate limits only those who ask it: a worker has the key of its Provider, so one
// that appends no events, or wrong ones, is limited by the vendor alone.
//
// Rates are in memory only, so a server that starts again has forgotten the last minute. Budgets are read from the
// stored events when they are first needed, so they outlive the server. Tasks below that were deleted by then no longer count.
//
// Budgets of namespaces (the kind Budget) are another mechanism, with exact accounts: see package storage/spending.
//
// One lock guards everything, and nothing is read from the store while it is held. What is used of a budget is a tally.
// The first request that needs a tally reads the stored events without the lock; others that need the same tally wait for
// it, and all other requests go on. The read also returns which requests had no end yet, and up to which event it has read each
// task. An end that is stored during the read, or whose start the gate does not know, is therefore counted exactly once: it
// settles the estimate of its request, and without one it counts if its event is after those that were read. No end makes
// the gate read again.
//
// What the gate knows of a task, a caller or a budget that nobody has asked for within 15 minutes is forgotten. It is read or
// estimated again when it is next needed.
package modelgate

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"math"
	"slices"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"

	"github.com/platform-ai/platform/pkg/apis/core/v1alpha1"
	"github.com/platform-ai/platform/pkg/fairshare"
)

const (
	// period is the time that rates refer to.
	period = time.Minute
	// look is the longest time until a task that waits asks again: its turn may come earlier than expected, because
	// tokens were given back, a limit was raised or a task was cancelled.
	look = 15 * time.Second
	// grace is how much later than it was told a task may come back without losing its place.
	grace = 10 * time.Second
	// maxOpen bounds the open requests of one task, whose worker may never report their ends. Older ones keep their estimate.
	maxOpen = 64
	// memory is how long something is known that nobody asks for.
	memory = 15 * time.Minute
)

// Limit is a rate limit of one Provider or Agent. 0 means no limit.
type Limit struct {
	// Of names the owner of the limit for people and identifies it, such as "Provider ns/name".
	Of               string
	Requests, Tokens int64
}

// Request is a model request that is about to begin.
type Request struct {
	// Task holds the place in the queues. For a request that is not of a task it stands for the caller.
	Task types.UID
	// Served is set for a request that this server makes itself for a caller. Its end is always reported, and the server
	// bounds how many such requests are open.
	Served bool
	// Namespace is that of the task or the caller.
	Namespace string
	// Call identifies the request among those of the task, and Key is the de-duplication key of the event for its
	// start. A request with the same key is the same request.
	Call, Key string
	// MaxTokens bounds the output. The input is estimated by that of the task's last request, or by Input if the gate knows
	// of none.
	MaxTokens, Input int64
	Limits           []Limit
	Budgets          []Budget
}

// WaitError says that a request must wait.
type WaitError struct {
	Limit Limit
	After time.Duration
}

// Error says what the request waits for.
func (e *WaitError) Error() string {
	return fmt.Sprintf("rateLimit of %s (%s): the request waits for its turn, in about %d s", e.Limit.Of, e.Limit, seconds(e.After))
}

// RetryAfter returns after how many seconds to ask again, at least one.
func (e *WaitError) RetryAfter() int { return seconds(min(e.After, look)) }

func seconds(d time.Duration) int { return max(1, int(math.Ceil(d.Seconds()))) }

// String describes the limit.
func (l Limit) String() string {
	switch {
	case l.Tokens == 0:
		return fmt.Sprintf("%d requests a minute", l.Requests)
	case l.Requests == 0:
		return fmt.Sprintf("%d tokens a minute", l.Tokens)
	default:
		return fmt.Sprintf("%d requests and %d tokens a minute", l.Requests, l.Tokens)
	}
}

// LimitOf appends the rate limit of an object, if it has one.
func LimitOf(list []Limit, kind, namespace, name string, l *v1alpha1.RateLimit) []Limit {
	if l == nil {
		return list
	}
	limit := Limit{Of: kind + " " + namespace + "/" + name}
	if l.RequestsPerMinute != nil {
		limit.Requests = int64(*l.RequestsPerMinute)
	}
	if l.TokensPerMinute != nil {
		limit.Tokens = *l.TokensPerMinute
	}
	if limit.Requests == 0 && limit.Tokens == 0 {
		return list
	}
	return append(list, limit)
}

// Gate decides for one server. It is safe for concurrent use.
type Gate struct {
	clock  clock.PassiveClock
	shares fairshare.Shares

	mu      sync.Mutex
	windows map[string]*window // by Limit.Of
	tallies map[types.UID]*tally
	tasks   map[types.UID]*runs
	swept   time.Time
}

// runs is what the gate knows of the requests of a task or a caller.
type runs struct {
	open []*reservation // oldest first
	// input is the number of input tokens of the last request that reported them.
	input int64
	asked time.Time
}

// reservation is a request that began.
type reservation struct {
	Call

	key       string
	namespace string
	at        time.Time
	tokens    int64
	windows   []*window
	budgets   []types.UID
}

// Call identifies a request.
type Call struct {
	// Task is that of Request.
	Task types.UID
	// ID identifies the request among those of the task.
	ID string
}

// Ended is the end of a request.
type Ended struct {
	Call

	// Seq is the number of the stored event of the end in the stream of the task; 0 for a caller.
	Seq int64
	// Used is how many tokens the request used; nil if that is unknown, and then its estimate stays. Input is the part of
	// it that was input.
	Used, Input *int64
}

// New returns a gate that goes round namespaces by their weights.
func New(c clock.PassiveClock, s fairshare.Shares) *Gate {
	return &Gate{clock: c, shares: s, swept: c.Now(), windows: map[string]*window{}, tallies: map[types.UID]*tally{}, tasks: map[types.UID]*runs{}}
}

// Begin reserves what a request needs. The error is a *WaitError, a *BudgetError, or the error of ctx or Budget.Used.
// undo takes the reservation back if the start of the request cannot be stored.
func (g *Gate) Begin(ctx context.Context, r Request) (undo func(), err error) {
	for {
		undo, unread, err := g.begin(r)
		if unread == nil {
			return undo, err
		}
		if err := g.read(ctx, *unread); err != nil {
			return nil, err
		}
	}
}

// begin is Begin if the tallies of all budgets are known. Otherwise it returns a budget whose tally must be read first.
func (g *Gate) begin(r Request) (undo func(), unread *Budget, err error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	now := g.clock.Now()
	g.sweep(now)
	t := g.runsOf(r.Task, now)
	if r.Key != "" {
		for _, o := range t.open {
			if o.key == r.Key {
				return func() {}, nil, nil // the answer to the first try was lost
			}
		}
	}
	need := r.MaxTokens + cmp.Or(t.input, r.Input)
	unread, err = g.afford(r.Budgets, need, now)
	if unread != nil || err != nil {
		return nil, unread, err
	}
	if err := g.turn(r, need, now); err != nil {
		return nil, nil, err
	}
	o := &reservation{Call: Call{r.Task, r.Call}, key: r.Key, namespace: r.Namespace, at: now, tokens: need}
	for _, l := range r.Limits {
		w := g.windows[l.Of]
		w.leave(r.Task)
		w.add(o)
		o.windows = append(o.windows, w)
	}
	for _, b := range r.Budgets {
		g.tallies[b.Task].begin(o.Call, need)
		o.budgets = append(o.budgets, b.Task)
	}
	t.open = append(t.open, o)
	if !r.Served && len(t.open) > maxOpen {
		t.open = t.open[1:]
	}
	return func() { g.undo(o) }, nil, nil
}

// runsOf returns what is known of a task or a caller.
func (g *Gate) runsOf(task types.UID, now time.Time) *runs {
	t := g.tasks[task]
	if t == nil {
		t = &runs{}
		g.tasks[task] = t
	}
	t.asked = now
	return t
}

// windowOf returns the window of a limit.
func (g *Gate) windowOf(l Limit) *window {
	w := g.windows[l.Of]
	if w == nil {
		w = &window{}
		g.windows[l.Of] = w
	}
	return w
}

// turn returns nil if all limits let the request begin. Otherwise the task gets a place in their queues.
func (g *Gate) turn(r Request, need int64, now time.Time) error {
	var longest *WaitError
	for _, l := range r.Limits {
		after := g.windowOf(l).wait(l, place{task: r.Task, namespace: r.Namespace, need: need}, now, g.shares)
		if after > 0 && (longest == nil || after > longest.After) {
			longest = &WaitError{Limit: l, After: after}
		}
	}
	if longest == nil {
		return nil
	}
	for _, l := range r.Limits {
		g.windows[l.Of].queue(place{r.Task, r.Namespace, need, now.Add(min(longest.After, look) + grace)})
	}
	return longest
}

func (g *Gate) undo(o *reservation) {
	g.mu.Lock()
	defer g.mu.Unlock()
	for _, w := range o.windows {
		w.remove(o)
	}
	for _, id := range o.budgets {
		if b := g.tallies[id]; b != nil {
			b.undo(o.Call)
		}
	}
	if t := g.tasks[o.Task]; t != nil {
		t.take(func(found *reservation) bool { return found == o })
	}
}

// End settles a request whose end is stored. It reports false if the gate does not know the request, as after a restart
// of the server or because its start was left out; then the caller calls Late.
func (g *Gate) End(e Ended) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	t := g.tasks[e.Task]
	if t == nil {
		return false
	}
	if e.Input != nil {
		t.input = *e.Input
	}
	o := t.take(func(found *reservation) bool { return found.ID == e.ID })
	if o == nil {
		return false
	}
	t.asked = g.clock.Now()
	if e.Used != nil {
		for _, w := range o.windows {
			w.change(o, *e.Used)
		}
		o.tokens = *e.Used
	}
	for _, id := range o.budgets {
		g.endIn(id, e, t.asked)
	}
	return true
}

// take removes the newest open request that is the one.
func (t *runs) take(isOne func(*reservation) bool) *reservation {
	for i, found := range slices.Backward(t.open) {
		if isOne(found) {
			t.open = append(t.open[:i:i], t.open[i+1:]...)
			return found
		}
	}
	return nil
}

// Late counts a request that ended and whose start the gate does not know. It may exceed the limits; later requests
// wait for it. If it is unknown what the request used, it counts towards rates by r.MaxTokens.
func (g *Gate) Late(r Request, e Ended) {
	g.mu.Lock()
	defer g.mu.Unlock()
	o := &reservation{namespace: r.Namespace, at: g.clock.Now(), tokens: r.MaxTokens}
	if e.Used != nil {
		o.tokens = *e.Used
	}
	for _, l := range r.Limits {
		w := g.windowOf(l)
		w.prune(o.at)
		w.add(o)
	}
	for _, b := range r.Budgets {
		g.endIn(b.Task, e, o.at)
	}
	if e.Input != nil {
		g.runsOf(r.Task, o.at).input = *e.Input
	}
}

// Forget removes what is known of a task that has ended, and its place in all queues. What it used still counts for limits
// and budgets.
func (g *Gate) Forget(task types.UID) {
	g.mu.Lock()
	defer g.mu.Unlock()
	delete(g.tasks, task)
	for _, w := range g.windows {
		w.leave(task)
	}
}

// sweep forgets, at most once in a period, what nobody has asked for within memory.
func (g *Gate) sweep(now time.Time) {
	if now.Sub(g.swept) < period {
		return
	}
	g.swept = now
	old := func(asked time.Time) bool { return now.Sub(asked) >= memory }
	maps.DeleteFunc(g.tasks, func(_ types.UID, t *runs) bool { return len(t.open) == 0 && old(t.asked) })
	maps.DeleteFunc(g.tallies, func(_ types.UID, t *tally) bool { return t.known && old(t.asked) })
	maps.DeleteFunc(g.windows, func(_ string, w *window) bool { w.prune(now); return w.idle() })
}
