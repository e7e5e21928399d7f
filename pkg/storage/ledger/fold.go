// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package ledger

import (
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/platform-ai/platform/pkg/apis/core/v1alpha1"
	"github.com/platform-ai/platform/pkg/event"
	"github.com/platform-ai/platform/pkg/llm"
	"github.com/platform-ai/platform/pkg/storage/engine"
	"github.com/platform-ai/platform/pkg/storage/eventlog"
	"github.com/platform-ai/platform/pkg/usage"
)

// maxOpen bounds the calls and the counters of a task that are kept open. Of more calls the oldest ends as a gap.
const maxOpen = 64

// taskState is what the events of a task have told so far.
type taskState struct {
	// live is set if all earlier events of the stream were folded. Otherwise nothing is, until Catch has folded them.
	live bool
	// seen is the newest event that was not folded, because the state was not live. It is not stored.
	seen int64

	attempt  int64
	ended    bool
	runtime  bool // an agent's own runtime has started in this attempt
	reported bool // this attempt has an observation
	open     []*usage.Observation
	counters []*counter
}

var _ eventlog.Projection = (*Ledger)(nil)

// folds reports whether events of a type change what is recorded.
func folds(t v1alpha1.EventType) bool {
	switch t {
	case v1alpha1.EventModelRequestStarted, v1alpha1.EventModelRequestCompleted, v1alpha1.EventModelRequestFailed, v1alpha1.EventModelUsageUpdated,
		v1alpha1.EventWorkerStarted, v1alpha1.EventWorkerCompleted, v1alpha1.EventWorkerFailed, v1alpha1.EventTaskStarted, v1alpha1.EventAgentRuntimeStarted:
		return true
	}
	return event.Terminal(t)
}

// foldedTypes returns those types.
func foldedTypes() []v1alpha1.EventType {
	return slices.DeleteFunc(event.Types(), func(t v1alpha1.EventType) bool { return !folds(t) })
}

// Admit reads the state of the stream, if the change concerns it.
func (l *Ledger) Admit(c *eventlog.Change) error {
	if !concerns(c) {
		return nil
	}
	for a := range c.Appended() {
		if err := l.admitCounter(c.Stream.Namespace, c.Stream.Session, a.Event); err != nil {
			return err
		}
	}
	_, err := l.state(c.Stream.UID)
	return err
}

// concerns reports whether a change begins or removes a stream, or appends events that are folded.
func concerns(c *eventlog.Change) bool {
	events := false
	for a := range c.Appended() {
		if events = true; a.Seq == 1 || folds(a.Event.Type) {
			return true
		}
	}
	return !events
}

// state returns the state of a stream. It reads the store only if the stream was not used since the start.
func (l *Ledger) state(uid types.UID) (*taskState, error) {
	if s := l.tasks[uid]; s != nil {
		return s, nil
	}
	v, ok, err := l.engine.Get(stateKey(string(uid)))
	if err != nil {
		return nil, err
	}
	s := &taskState{}
	if ok {
		s.live = true
		if err := decode(v, func(c *coder) { c.state(s) }); err != nil {
			return nil, fmt.Errorf("%w: state of task %s", err, uid)
		}
	}
	l.tasks[uid] = s
	return s, nil
}

// Project writes the rows of a change.
func (l *Ledger) Project(b engine.Batch, c *eventlog.Change) error {
	s := l.tasks[c.Stream.UID]
	if s == nil || !concerns(c) {
		return nil
	}
	at, err := l.now(b)
	if err != nil {
		return err
	}
	f := &folding{taskState: s, of: c.Stream, namespaceUID: l.namespaceUID(c.Stream.Namespace), totals: l.sessions}
	events := false
	for a := range c.Appended() {
		events = true
		if a.Seq == 1 {
			s.live, f.changed = true, true
		}
		switch {
		case !folds(a.Event.Type):
		case s.live:
			f.add(a.Event, a.Seq, at)
		default:
			s.seen = a.Seq
		}
	}
	if !events && s.live && !s.ended { // the stream is removed
		f.end(usage.StatusFailed)
		s.ended, f.changed = true, true
	}
	if s.ended || !events {
		delete(l.tasks, c.Stream.UID) // nothing but late events follows
	}
	return f.write(b, at)
}

// folding is one pass over events of a stream.
type folding struct {
	*taskState

	of           eventlog.Stream
	namespaceUID string
	totals       map[string]usage.Counts // of session counters

	put     []*usage.Observation
	moved   map[string]usage.Counts // of totals
	changed bool
}

// write writes what changed.
func (f *folding) write(b engine.Batch, at time.Time) error {
	var err error
	for _, o := range f.put {
		o.ObservedAt = at
		err = errors.Join(err, putObservation(b, o))
	}
	for _, k := range slices.Sorted(maps.Keys(f.moved)) {
		n := f.moved[k]
		err = errors.Join(err, b.Set([]byte(k), encode(func(c *coder) { c.counts(&n) })))
	}
	if f.changed {
		err = errors.Join(err, b.Set(stateKey(string(f.of.UID)), encode(func(c *coder) { c.state(f.taskState) })))
	}
	return err
}

// reported is what the content of an event says about its request or counter.
type reported struct {
	Iteration, Attempt    int64
	ErrorClass            llm.Class
	Unsent                bool
	CacheWriteInputTokens *int64
	Counter               string
	Scope                 usage.Scope
	Baseline              bool
}

// reportedBy reads the content of an event. A member of another form says nothing.
func reportedBy(e *v1alpha1.ExecutionEvent) (r reported) {
	members := map[string]json.RawMessage{}
	if e.Content == nil || json.Unmarshal(e.Content.Raw, &members) != nil {
		return r
	}
	for name, value := range map[string]any{
		"iteration": &r.Iteration, "attempt": &r.Attempt, "errorClass": &r.ErrorClass, "unsent": &r.Unsent,
		"counter": &r.Counter, "scope": &r.Scope, "baseline": &r.Baseline,
	} {
		if raw, ok := members[name]; ok {
			_ = json.Unmarshal(raw, value) // see above
		}
	}
	n := int64(0)
	if raw := members["cacheWriteInputTokens"]; len(raw) > 0 && string(raw) != "null" && json.Unmarshal(raw, &n) == nil {
		r.CacheWriteInputTokens = &n
	}
	return r
}

func countsOf(e *v1alpha1.ExecutionEvent, r *reported) usage.Counts {
	return usage.Counts{
		InputTokens: e.InputTokens, OutputTokens: e.OutputTokens, CachedInputTokens: e.CachedInputTokens, CacheWriteInputTokens: r.CacheWriteInputTokens,
	}
}

// add folds one event.
func (f *folding) add(e *v1alpha1.ExecutionEvent, seq int64, at time.Time) {
	switch e.Type {
	case v1alpha1.EventModelRequestStarted:
		f.begin(e, seq, at)
	case v1alpha1.EventModelRequestCompleted, v1alpha1.EventModelRequestFailed:
		f.finish(e, seq, at)
	case v1alpha1.EventModelUsageUpdated:
		f.count(e, at)
	case v1alpha1.EventWorkerStarted, v1alpha1.EventTaskStarted:
		f.enter(reportedBy(e).Attempt)
	case v1alpha1.EventAgentRuntimeStarted:
		f.runtime, f.changed = true, true
	case v1alpha1.EventWorkerCompleted:
		f.endAttempt(e, usage.StatusCompleted, at)
	case v1alpha1.EventWorkerFailed:
		f.endAttempt(e, usage.StatusFailed, at)
	case v1alpha1.EventTaskSucceeded:
		f.endTask(usage.StatusCompleted, at)
	case v1alpha1.EventTaskFailed:
		f.endTask(usage.StatusFailed, at)
	case v1alpha1.EventTaskCancelled:
		f.endTask(usage.StatusCancelled, at)
	}
}

// enter begins an attempt. Requests of an earlier one cannot end any more.
func (f *folding) enter(attempt int64) {
	if attempt <= f.attempt {
		return
	}
	f.end(usage.StatusFailed)
	f.attempt, f.runtime, f.reported, f.changed = attempt, false, false, true
}

// endAttempt ends the attempt of a worker, unless another one has begun.
func (f *folding) endAttempt(e *v1alpha1.ExecutionEvent, s usage.Status, at time.Time) {
	if reportedBy(e).Attempt >= f.attempt {
		f.unavailable(s, at)
		f.end(s)
	}
}

func (f *folding) endTask(s usage.Status, at time.Time) {
	f.unavailable(s, at)
	f.end(s)
	f.ended, f.changed = true, true
}

// unavailable records that the runtime of an agent reported nothing in an attempt.
func (f *folding) unavailable(s usage.Status, at time.Time) {
	if !f.runtime || f.reported {
		return
	}
	o := f.observation(f.id("attempt"), at)
	o.Scope, o.Source, o.Status, o.Gap = usage.ScopeAttempt, usage.SourceAgent, s, usage.GapUnavailable
	f.record(o)
}

// end ends what is open. Of open requests the final usage is missing. Counters keep their totals and get the status.
func (f *folding) end(s usage.Status) {
	for _, o := range f.open {
		o.Gap = usage.GapFinalUsage
		f.record(o)
	}
	for _, c := range f.counters {
		if c.o.Status != s && c.o.Status != usage.StatusUnattributed {
			c.o.Status = s
			f.record(&c.o)
		}
	}
	f.changed = f.changed || len(f.open)+len(f.counters) > 0
	f.open, f.counters = nil, nil
}

// record queues a state of an observation as it is now.
func (f *folding) record(o *usage.Observation) {
	c := *o
	f.put = append(f.put, &c)
	f.reported, f.changed = true, true
}

// id derives an ID from the task and from what identifies the observation in it. Folding the same events again, such as
// after a restore, gives the same IDs.
func (f *folding) id(parts ...any) string {
	sum := sha256.Sum256(fmt.Appendf(nil, "%s\x00%d\x00%q", f.of.UID, f.attempt, parts))
	return idText(sum[:idLen])
}

func (f *folding) observation(id string, at time.Time) *usage.Observation {
	return &usage.Observation{
		ID: id, Namespace: f.of.Namespace, NamespaceUID: f.namespaceUID, TaskUID: string(f.of.UID), TaskName: f.of.Task, SessionName: f.of.Session,
		AttemptID: strconv.FormatInt(max(1, f.attempt), 10), StartedAt: at,
	}
}

func (f *folding) call(e *v1alpha1.ExecutionEvent, r *reported, seq int64, at time.Time) *usage.Observation {
	o := f.observation(f.id("call", seq), at)
	o.CounterID = fmt.Sprintf("%d/%d", r.Iteration, r.Attempt)
	o.Scope, o.Source, o.Status = usage.ScopeCall, usage.SourceProvider, usage.StatusStarted
	o.Provider, o.Model = e.Provider, e.Model
	return o
}

// begin opens a request.
func (f *folding) begin(e *v1alpha1.ExecutionEvent, seq int64, at time.Time) {
	r := reportedBy(e)
	o := f.call(e, &r, seq, at)
	f.close(func(other *usage.Observation) bool { return other.CounterID == o.CounterID })
	if len(f.open) >= maxOpen {
		oldest := f.open[0]
		f.close(func(other *usage.Observation) bool { return other == oldest })
	}
	f.open = append(f.open, o)
	f.record(o)
}

// close ends open requests whose end was lost.
func (f *folding) close(these func(*usage.Observation) bool) {
	f.open = slices.DeleteFunc(f.open, func(o *usage.Observation) bool {
		if !these(o) {
			return false
		}
		o.Gap = usage.GapFinalUsage
		f.record(o)
		return true
	})
}

// finish ends a request. The model is the one that was asked, whatever the end says.
func (f *folding) finish(e *v1alpha1.ExecutionEvent, seq int64, at time.Time) {
	r := reportedBy(e)
	o := f.call(e, &r, seq, at)
	i := slices.IndexFunc(f.open, func(other *usage.Observation) bool { return other.CounterID == o.CounterID })
	found := i >= 0
	if found {
		o = f.open[i]
		f.open = slices.Delete(f.open, i, i+1)
	}
	out := usage.Outcome{Counts: countsOf(e, &r)}
	o.Status = usage.StatusCompleted
	if e.Type == v1alpha1.EventModelRequestFailed {
		o.Status = usage.StatusFailed
		if r.ErrorClass == llm.ClassCanceled {
			o.Status = usage.StatusCancelled
		}
		out.Refused = r.ErrorClass.Refused() || r.Unsent
	}
	o.Settle(out)
	if !found && o.Gap == "" {
		o.Gap, o.Complete = usage.GapStart, false
	}
	f.record(o)
}

func (c *coder) state(s *taskState) {
	c.number(&s.attempt)
	c.flag(&s.ended)
	c.flag(&s.runtime)
	c.flag(&s.reported)
	n := int64(len(s.open))
	c.number(&n)
	for i := int64(0); i < n && c.err == nil; i++ {
		if c.reading {
			s.open = append(s.open, &usage.Observation{})
		}
		c.observation(s.open[i])
	}
	n = int64(len(s.counters))
	c.number(&n)
	for i := int64(0); i < n && c.err == nil; i++ {
		if c.reading {
			s.counters = append(s.counters, &counter{})
		}
		one := s.counters[i]
		c.observation(&one.o)
		c.counts(&one.base)
		c.counts(&one.total)
	}
}
