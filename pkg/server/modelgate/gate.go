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
// Rates are in memory only, so a server that starts again has forgotten the last minute. Budgets are read from the
// stored events when they are first needed, so they outlive the server.
package modelgate

import (
	"cmp"
	"fmt"
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
	// maxOpen bounds the requests of one task that are open at the same time. Older ones keep their estimate.
	maxOpen = 64
)

// Limit is a rate limit of one Provider or Agent. 0 means no limit.
type Limit struct {
	// Of names the owner of the limit for people and identifies it, such as "Provider ns/name".
	Of               string
	Requests, Tokens int64
}

// Budget is the token budget of one task, for itself and the tasks below it.
type Budget struct {
	Task types.UID
	// Name is the task's name, for people.
	Name string
	Most int64
	// Used reads from the stored events how many tokens were used before. It is called while the gate is locked.
	Used func() (int64, error)
}

// Request is a model request that is about to begin.
type Request struct {
	// Task holds the place in the queues. For a request that is not of a task it stands for the caller.
	Task types.UID
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

// BudgetError says that a budget has no room for a request.
type BudgetError struct {
	Task              string
	Used, Asked, Most int64
}

// Error names the budget and what is left of it.
func (e *BudgetError) Error() string {
	return fmt.Sprintf("spec.ai.tokenBudget of task %s: the next model request may need %d tokens; %d of %d are used", e.Task, e.Asked, e.Used, e.Most)
}

// Gate decides for one server. It is safe for concurrent use.
type Gate struct {
	clock  clock.PassiveClock
	shares fairshare.Shares

	mu      sync.Mutex
	windows map[string]*window // by Limit.Of
	tallies map[types.UID]*tally
	tasks   map[types.UID]*runs
}

// tally is what is used of a budget.
type tally struct{ used int64 }

// runs is what the gate knows of a task's requests.
type runs struct {
	open []*reservation // oldest first
	// input is the number of input tokens of the last request that reported them.
	input int64
}

// reservation is a request that began.
type reservation struct {
	call, key string
	namespace string
	at        time.Time
	tokens    int64
	windows   []*window
	tallies   []*tally
}

// New returns a gate that goes round namespaces by their weights.
func New(c clock.PassiveClock, s fairshare.Shares) *Gate {
	return &Gate{clock: c, shares: s, windows: map[string]*window{}, tallies: map[types.UID]*tally{}, tasks: map[types.UID]*runs{}}
}

// Begin reserves what a request needs. The error is a *WaitError, a *BudgetError or that of Budget.Used. undo takes
// the reservation back if the start of the request cannot be stored.
func (g *Gate) Begin(r Request) (undo func(), err error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	now := g.clock.Now()
	t := g.tasks[r.Task]
	if t == nil {
		t = &runs{}
		g.tasks[r.Task] = t
	}
	if r.Key != "" {
		for _, o := range t.open {
			if o.key == r.Key {
				return func() {}, nil // the answer to the first try was lost
			}
		}
	}
	need := r.MaxTokens + cmp.Or(t.input, r.Input)
	tallies, err := g.afford(r.Budgets, need)
	if err != nil {
		return nil, err
	}
	if err := g.turn(r, need, now); err != nil {
		return nil, err
	}
	o := &reservation{call: r.Call, key: r.Key, namespace: r.Namespace, at: now, tokens: need, tallies: tallies}
	for _, l := range r.Limits {
		w := g.windows[l.Of]
		w.leave(r.Task)
		w.add(o)
		o.windows = append(o.windows, w)
	}
	for _, b := range tallies {
		b.used += need
	}
	t.open = append(t.open, o)
	if len(t.open) > maxOpen {
		t.open = t.open[1:]
	}
	return func() { g.undo(r.Task, o) }, nil
}

// afford returns the tallies of the budgets if each has room for n tokens.
func (g *Gate) afford(budgets []Budget, n int64) ([]*tally, error) {
	var all []*tally
	for _, b := range budgets {
		sum := g.tallies[b.Task]
		if sum == nil {
			used, err := b.Used()
			if err != nil {
				return nil, err
			}
			sum = &tally{used}
			g.tallies[b.Task] = sum
		}
		if sum.used+n > b.Most {
			return nil, &BudgetError{Task: b.Name, Used: sum.used, Asked: n, Most: b.Most}
		}
		all = append(all, sum)
	}
	return all, nil
}

// turn returns nil if all limits let the request begin. Otherwise the task gets a place in their queues.
func (g *Gate) turn(r Request, need int64, now time.Time) error {
	var longest *WaitError
	for _, l := range r.Limits {
		w := g.windows[l.Of]
		if w == nil {
			w = &window{}
			g.windows[l.Of] = w
		}
		if after := w.wait(l, place{task: r.Task, namespace: r.Namespace, need: need}, now, g.shares); after > 0 && (longest == nil || after > longest.After) {
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

func (g *Gate) undo(task types.UID, o *reservation) {
	g.mu.Lock()
	defer g.mu.Unlock()
	for _, w := range o.windows {
		w.remove(o)
	}
	g.charge(o, 0)
	if t := g.tasks[task]; t != nil {
		t.take(o.call, o)
	}
}

// charge changes what a reservation holds of its windows and tallies.
func (g *Gate) charge(o *reservation, tokens int64) {
	for _, b := range o.tallies {
		b.used += tokens - o.tokens
	}
	for _, w := range o.windows {
		w.change(o, tokens)
	}
	o.tokens = tokens
}

// End settles a request whose end is stored. used is how many tokens it used; nil if that is unknown, and then its
// estimate stays. input is the part of it that was input. It reports false if the gate does not know the request, as
// after a restart of the server or because its start was left out.
func (g *Gate) End(task types.UID, call string, used, input *int64) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	t := g.tasks[task]
	if t == nil {
		return false
	}
	if input != nil {
		t.input = *input
	}
	o := t.take(call, nil)
	if o == nil {
		return false
	}
	if used != nil {
		g.charge(o, *used)
	}
	return true
}

// take removes the open request: o, or the newest one of that call.
func (t *runs) take(call string, o *reservation) *reservation {
	for i, found := range slices.Backward(t.open) {
		if found == o || o == nil && found.call == call {
			t.open = append(t.open[:i:i], t.open[i+1:]...)
			return found
		}
	}
	return nil
}

// Late counts a request that ended and whose start the gate does not know. It may exceed the limits; later requests
// wait for it. Its budgets are read again when they are next needed.
func (g *Gate) Late(r Request, tokens int64, input *int64) {
	g.mu.Lock()
	defer g.mu.Unlock()
	o := &reservation{namespace: r.Namespace, at: g.clock.Now(), tokens: tokens}
	for _, l := range r.Limits {
		w := g.windows[l.Of]
		if w == nil {
			w = &window{}
			g.windows[l.Of] = w
		}
		w.prune(o.at)
		w.add(o)
	}
	for _, b := range r.Budgets {
		delete(g.tallies, b.Task)
	}
	if input != nil {
		if g.tasks[r.Task] == nil {
			g.tasks[r.Task] = &runs{}
		}
		g.tasks[r.Task].input = *input
	}
}

// Forget removes what is known of a task that has ended: its place in all queues and its budget. What it used still
// counts for limits and for the budgets of the tasks above it.
func (g *Gate) Forget(task types.UID) {
	g.mu.Lock()
	defer g.mu.Unlock()
	delete(g.tasks, task)
	delete(g.tallies, task)
	now := g.clock.Now()
	for of, w := range g.windows {
		w.leave(task)
		if w.prune(now); w.idle() {
			delete(g.windows, of)
		}
	}
}
