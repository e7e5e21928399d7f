// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package ledger

import (
	"cmp"
	"fmt"
	"time"

	"github.com/platform-ai/platform/pkg/apis/core/v1alpha1"
	"github.com/platform-ai/platform/pkg/usage"
)

// counter is a cumulative counter that an agent reports in an attempt. What it contributes is how far its highest total
// is above its base.
type counter struct {
	o usage.Observation
	// base is the total of a session counter before the attempt. total is the highest one. Nil is not reported.
	base, total usage.Counts
}

// counterName is the name of a counter that its events do not name. otherCounters is that of counters beyond maxOpen.
const (
	counterName   = "usage"
	otherCounters = "other"
)

// columns lists the counts of each argument, column by column.
func columns(all ...*usage.Counts) [4][]**int64 {
	var out [4][]**int64
	for _, c := range all {
		for i, p := range []**int64{&c.InputTokens, &c.OutputTokens, &c.CachedInputTokens, &c.CacheWriteInputTokens} {
			out[i] = append(out[i], p)
		}
	}
	return out
}

// sessionCounter returns the key of the totals that an event continues, or an empty string.
func sessionCounter(namespace, session string, e *v1alpha1.ExecutionEvent, r *reported) string {
	if e.Type != v1alpha1.EventModelUsageUpdated || r.Scope != usage.ScopeSession || session == "" {
		return ""
	}
	return string(counterKey(namespace, session, cmp.Or(r.Counter, counterName)))
}

// admitCounter reads the totals of the session counter of an event.
func (l *Ledger) admitCounter(namespace, session string, e *v1alpha1.ExecutionEvent) error {
	if e.Type != v1alpha1.EventModelUsageUpdated {
		return nil
	}
	r := reportedBy(e)
	key := sessionCounter(namespace, session, e, &r)
	if _, known := l.sessions[key]; key == "" || known {
		return nil
	}
	v, ok, err := l.engine.Get([]byte(key))
	if err != nil || !ok {
		return err
	}
	var total usage.Counts
	if err := decode(v, func(c *coder) { c.counts(&total) }); err != nil {
		return fmt.Errorf("%w: key %q", err, key)
	}
	l.sessions[key] = total
	return nil
}

// count folds a snapshot of a counter.
func (f *folding) count(e *v1alpha1.ExecutionEvent, at time.Time) {
	r := reportedBy(e)
	now := countsOf(e, &r)
	key := sessionCounter(f.of.Namespace, f.of.Session, e, &r)
	c := f.counter(e, &r, key, at)
	bad := false
	for _, col := range columns(&now) {
		if n := *col[0]; n != nil && (*n < 0 || *n > usage.MaxTokens) {
			*col[0], bad = nil, true
		}
	}
	if key != "" && c.total == (usage.Counts{}) {
		f.startSession(c, key, now, r.Baseline, at)
	}
	decreased := false
	for _, col := range columns(&now, &c.total, &c.base, &c.o.Counts) {
		n, total, base, used := *col[0], col[1], *col[2], col[3]
		if n == nil {
			continue
		}
		if *total != nil && *n < **total {
			decreased = true
			n = *total
		}
		*total = n
		sum := *n
		if base != nil {
			sum -= *base
		}
		sum = max(0, sum)
		*used = &sum
	}
	if r.Baseline && key == "" {
		c.base = c.total
		for _, col := range columns(&c.base, &c.o.Counts) {
			if *col[0] != nil {
				*col[1] = new(int64)
			}
		}
	}
	c.settle(bad, decreased)
	if key != "" {
		f.remember(key, c.total)
	}
	f.record(&c.o)
}

// settle says whether the counts are complete. A gap that was found once stays, unless it was that nothing was reported.
func (c *counter) settle(bad, decreased bool) {
	o := &c.o
	if o.Gap == usage.GapUnavailable || o.Gap == usage.GapNotReported {
		o.Gap = ""
	}
	switch {
	case bad:
		o.Gap = usage.GapTooLarge
	case decreased:
		o.Gap = usage.GapDecreased
	case o.Gap != "" || o.Reported():
	case o.Some():
		o.Gap = usage.GapNotReported
	default:
		o.Gap = usage.GapUnavailable
	}
	o.Complete = o.Gap == ""
}

// startSession finds the base of a session counter. Without one, all of the first total is unattributed.
func (f *folding) startSession(c *counter, key string, now usage.Counts, baseline bool, at time.Time) {
	base, known := f.totals[key]
	if known {
		c.base, c.total = base, base
		return
	}
	c.base = now
	if baseline || !now.Some() {
		return
	}
	o := f.observation(f.id("baseline", c.o.CounterID), at)
	o.TaskUID, o.TaskName, o.AttemptID = "", "", ""
	o.Scope, o.Source, o.Status, o.Gap = usage.ScopeSession, usage.SourceAgent, usage.StatusUnattributed, usage.GapBaseline
	o.CounterID, o.Provider, o.Model, o.Counts = c.o.CounterID, c.o.Provider, c.o.Model, now
	f.record(o)
}

// remember keeps the highest totals of a session counter.
func (f *folding) remember(key string, total usage.Counts) {
	if f.moved == nil {
		f.moved = map[string]usage.Counts{}
	}
	f.moved[key], f.totals[key] = total, total
}

// counter returns the counter of an event in the present attempt.
func (f *folding) counter(e *v1alpha1.ExecutionEvent, r *reported, key string, at time.Time) *counter {
	name, scope := cmp.Or(r.Counter, counterName), usage.ScopeAttempt
	if key != "" {
		scope = usage.ScopeSession
	}
	find := func() *counter {
		for _, c := range f.counters {
			if c.o.CounterID == name && c.o.Scope == scope {
				return c
			}
		}
		return nil
	}
	if c := find(); c != nil {
		return c
	}
	if len(f.counters) >= maxOpen {
		if name = otherCounters; find() != nil {
			return find()
		}
	}
	o := f.observation(f.id("counter", string(scope), name), at)
	o.CounterID, o.Scope, o.Source, o.Status = name, scope, usage.SourceAgent, usage.StatusCompleted
	o.Provider, o.Model = e.Provider, e.Model
	f.counters = append(f.counters, &counter{o: *o})
	return f.counters[len(f.counters)-1]
}
