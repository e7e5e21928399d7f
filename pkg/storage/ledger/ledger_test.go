// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package ledger_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/types"
	clocktesting "k8s.io/utils/clock/testing"

	"github.com/platform-ai/platform/pkg/apis/core/v1alpha1"
	"github.com/platform-ai/platform/pkg/event"
	"github.com/platform-ai/platform/pkg/storage/engine/local"
	"github.com/platform-ai/platform/pkg/storage/eventlog"
	"github.com/platform-ai/platform/pkg/storage/ledger"
	"github.com/platform-ai/platform/pkg/usage"
)

var noon = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

// store is a ledger with the log that it follows.
type store struct {
	t     testing.TB
	dir   string
	clock *clocktesting.FakeClock
	e     *local.Engine
	*ledger.Ledger
	log   *eventlog.Log
	plain bool // the log has no ledger, as in an older version
}

func open(t testing.TB) *store {
	t.Helper()
	s := &store{t: t, dir: t.TempDir(), clock: clocktesting.NewFakeClock(noon)}
	s.start()
	t.Cleanup(s.stop)
	return s
}

func (s *store) start() {
	s.t.Helper()
	var err error
	if s.e, err = local.Open(s.t.Context(), local.Options{Dir: s.dir}); err != nil {
		s.t.Fatal(err)
	}
	o := eventlog.Options{Clock: s.clock, PurgeInterval: -1}
	if !s.plain {
		if s.Ledger, err = ledger.Open(s.e, s.clock); err != nil {
			s.t.Fatal(err)
		}
		s.SetNamespaceUID(func(namespace string) string { return "uid-of-" + namespace })
		o.Projections = []eventlog.Projection{s.Ledger}
	}
	if s.log, err = eventlog.Open(s.t.Context(), s.e, o); err != nil {
		s.t.Fatal(err)
	}
}

func (s *store) stop() {
	if err := s.log.Close(); err != nil {
		s.t.Error(err)
	}
	if err := s.e.Close(); err != nil {
		s.t.Error(err)
	}
}

// restart stops and starts the store, with or without a ledger.
func (s *store) restart(plain bool) {
	s.t.Helper()
	s.stop()
	s.plain = plain
	s.start()
}

func stream(task string) eventlog.Stream {
	return eventlog.Stream{Namespace: "ns", Task: task, UID: types.UID("uid-" + task), Session: "chat"}
}

// append appends events, each given as its type and its content. Each append is a second later than the one before.
func (s *store) append(task string, lines ...string) {
	s.t.Helper()
	var list []*v1alpha1.ExecutionEvent
	for _, line := range lines {
		typ, content, _ := strings.Cut(line, " ")
		c := map[string]any{}
		if content != "" {
			if err := json.Unmarshal([]byte(content), &c); err != nil {
				s.t.Fatal(line, err)
			}
		}
		list = append(list, event.New(v1alpha1.EventType(typ), v1alpha1.SeverityInfo, "", "", c))
	}
	if _, err := s.log.Append(s.t.Context(), stream(task), list); err != nil {
		s.t.Fatal(err)
	}
	s.clock.Step(time.Second)
}

func (s *store) view(asOf time.Time) usage.View {
	s.t.Helper()
	v, err := s.At(s.t.Context(), "ns", asOf)
	if err != nil {
		s.t.Fatal(err)
	}
	v.Close() // so that a test may remove records
	return v
}

// brief describes an observation on one line; - is not reported.
func brief(o *usage.Observation) string {
	n := func(p *int64) string {
		if p == nil {
			return "-"
		}
		return fmt.Sprint(*p)
	}
	line := fmt.Sprintf("%s/%s %s %s %s %s", o.TaskName, o.AttemptID, o.CounterID, o.Scope, o.Model, o.Status)
	line += fmt.Sprintf(" %s %s %s %s", n(o.InputTokens), n(o.OutputTokens), n(o.CachedInputTokens), n(o.CacheWriteInputTokens))
	if o.Complete {
		line += " complete"
	}
	if o.Gap != "" {
		line += " (" + o.Gap + ")"
	}
	return line
}

func (s *store) all(asOf time.Time) []string {
	s.t.Helper()
	var out []string
	for o, err := range s.view(asOf).Observations(usage.Period{}) {
		if err != nil {
			s.t.Fatal(err)
		}
		out = append(out, brief(o))
	}
	return out
}

func (s *store) want(want ...string) {
	s.t.Helper()
	if got := s.all(s.clock.Now()); strings.Join(got, "\n") != strings.Join(want, "\n") {
		s.t.Errorf("the ledger has\n  %s\nwant\n  %s", strings.Join(got, "\n  "), strings.Join(want, "\n  "))
	}
}

const (
	started   = `ModelRequestStarted {"iteration":%d,"attempt":1,"provider":"p","model":"m"}`
	completed = `ModelRequestCompleted {"iteration":%d,"attempt":1,"provider":"p","model":"m","inputTokens":%d,"outputTokens":%d}`
)

func begin(i int) string         { return fmt.Sprintf(started, i) }
func end(i, in, out int) string  { return fmt.Sprintf(completed, i, in, out) }
func worker(attempt int) string  { return fmt.Sprintf(`WorkerStarted {"attempt":%d}`, attempt) }
func counted(text string) string { return "ModelUsageUpdated " + text }
func failed(class string) string {
	return `ModelRequestFailed {"iteration":1,"attempt":1,"provider":"p","model":"m","errorClass":"` + class + `"}`
}

// TestWorkers is what the events of tasks come to. Each case begins with the first event of its stream.
func TestWorkers(t *testing.T) {
	for _, c := range []struct {
		name   string
		events []string
		want   []string
	}{
		{"nothing", []string{"TaskCreated", worker(1), "TaskSucceeded"}, nil},
		{"one call", []string{worker(1), begin(1), end(1, 10, 5)}, []string{"a/1 1/1 call m completed 10 5 - - complete"}},
		{
			"all columns",
			[]string{worker(1), begin(1), `ModelRequestCompleted {"iteration":1,"attempt":1,"inputTokens":10,"outputTokens":5,"cachedInputTokens":4,"cacheWriteInputTokens":3}`},
			[]string{"a/1 1/1 call m completed 10 5 4 3 complete"},
		},
		{"zero is not null", []string{begin(1), end(1, 0, 0)}, []string{"a/1 1/1 call m completed 0 0 - - (reported as zero)"}},
		{"open", []string{worker(1), begin(1)}, []string{"a/1 1/1 call m started - - - -"}},
		{"no usage", []string{begin(1), `ModelRequestCompleted {"iteration":1,"attempt":1}`}, []string{"a/1 1/1 call m completed - - - - (usage not reported)"}},
		{"half of it", []string{begin(1), `ModelRequestCompleted {"iteration":1,"attempt":1,"inputTokens":3}`}, []string{"a/1 1/1 call m completed 3 - - - (usage not reported)"}},
		{"refused", []string{begin(1), failed("auth")}, []string{"a/1 1/1 call m failed - - - - (request refused)"}},
		{"failed", []string{begin(1), failed("server_error")}, []string{"a/1 1/1 call m failed - - - - (usage not reported)"}},
		{"cancelled", []string{begin(1), failed("canceled")}, []string{"a/1 1/1 call m cancelled - - - - (usage not reported)"}},
		{"no start", []string{worker(1), end(1, 2, 3)}, []string{"a/1 1/1 call m completed 2 3 - - (missing start record)"}},
		{"the task ended", []string{worker(1), begin(1), "TaskFailed"}, []string{"a/1 1/1 call m started - - - - (missing final usage)"}},
		{"the worker ended", []string{worker(1), begin(1), `WorkerFailed {"attempt":1}`}, []string{"a/1 1/1 call m started - - - - (missing final usage)"}},
		{"a retry", []string{worker(1), begin(1), worker(2), begin(1), end(1, 4, 4)}, []string{
			"a/1 1/1 call m started - - - - (missing final usage)", "a/2 1/1 call m completed 4 4 - - complete",
		}},
		{"delivered again", []string{worker(1), begin(1), `TaskStarted {"attempt":1}`, worker(1), end(1, 4, 4)}, []string{"a/1 1/1 call m completed 4 4 - - complete"}},
		{"the end was lost", []string{worker(1), begin(1), begin(1), end(1, 4, 4)}, []string{
			"a/1 1/1 call m started - - - - (missing final usage)", "a/1 1/1 call m completed 4 4 - - complete",
		}},
		{
			"counter",
			[]string{worker(1), counted(`{"inputTokens":1000,"outputTokens":1}`), counted(`{"inputTokens":1500,"outputTokens":2}`)},
			[]string{"a/1 usage attempt  completed 1500 2 - - complete"},
		},
		{
			"counter decreases",
			[]string{worker(1), counted(`{"inputTokens":1000,"outputTokens":5}`), counted(`{"inputTokens":10,"outputTokens":6}`), counted(`{"inputTokens":1001,"outputTokens":7}`)},
			[]string{"a/1 usage attempt  completed 1001 7 - - (counter decreased)"},
		},
		{
			"counter of a cancelled task",
			[]string{worker(1), counted(`{"inputTokens":1,"outputTokens":1}`), "TaskCancelled"},
			[]string{"a/1 usage attempt  cancelled 1 1 - - complete"},
		},
		{
			"counters of two attempts",
			[]string{worker(1), counted(`{"inputTokens":7,"outputTokens":1}`), worker(2), counted(`{"inputTokens":8,"outputTokens":1}`)},
			[]string{"a/1 usage attempt  failed 7 1 - - complete", "a/2 usage attempt  completed 8 1 - - complete"},
		},
		{"session without a baseline", []string{worker(1), counted(`{"scope":"session","inputTokens":1000,"outputTokens":10}`), counted(`{"scope":"session","inputTokens":1500,"outputTokens":30}`)}, []string{
			"/ usage session  unattributed 1000 10 - - (missing initial baseline)", "a/1 usage session  completed 500 20 - - complete",
		}},
		{
			"session with a baseline",
			[]string{worker(1), counted(`{"scope":"session","baseline":true,"inputTokens":1000,"outputTokens":10}`), counted(`{"scope":"session","inputTokens":1500,"outputTokens":30}`)},
			[]string{"a/1 usage session  completed 500 20 - - complete"},
		},
		{"runtime without a report", []string{worker(1), "AgentRuntimeStarted", `WorkerCompleted {"attempt":1}`}, []string{"a/1  attempt  completed - - - - (usage unavailable)"}},
		{
			"too large",
			[]string{counted(`{"inputTokens":1,"outputTokens":1,"cacheWriteInputTokens":9007199254740993}`)},
			[]string{"a/1 usage attempt  completed 1 1 - - (count out of range)"},
		},
		{
			"a lie",
			[]string{begin(1), `ModelRequestCompleted {"iteration":1,"attempt":1,"inputTokens":1,"outputTokens":1,"cacheWriteInputTokens":-5}`},
			[]string{"a/1 1/1 call m completed 1 1 - - (count out of range)"},
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			s := open(t)
			for _, e := range c.events {
				s.append("a", e)
			}
			sorted(s, t, c.want)
			s.restart(false)
			sorted(s, t, c.want)
		})
	}
	t.Run("of an older store", func(t *testing.T) {
		t.Parallel()
		s := open(t)
		s.restart(true)
		s.append("a", worker(1), begin(1), end(1, 1, 2), begin(2))
		s.append("b", begin(1), end(1, 1, 2), "TaskSucceeded")
		s.restart(false)
		s.want()
		want := []string{"a/1 1/1 call m completed 1 2 - - complete", "a/1 2/1 call m completed 3 4 - - complete", "b/1 1/1 call m completed 1 2 - - complete"}
		s.append("a", end(2, 3, 4), begin(3)) // before the older events are folded
		s.want()
		for range 2 {
			if err := s.Catch(t.Context(), s.log); err != nil {
				t.Fatal(err)
			}
			s.clock.Step(time.Second)
			sorted(s, t, append(want, "a/1 3/1 call m started - - - -"))
		}
		s.append("a", end(3, 5, 6))
		sorted(s, t, append(want, "a/1 3/1 call m completed 5 6 - - complete"))
	})
}

// sorted compares regardless of the order of observations that started at the same time.
func sorted(s *store, t *testing.T, want []string) {
	t.Helper()
	got := map[string]int{}
	for _, line := range s.all(s.clock.Now()) {
		got[line]++
	}
	for _, line := range want {
		if got[line]--; got[line] < 0 {
			t.Errorf("missing: %s", line)
		}
	}
	for line, n := range got {
		if n > 0 {
			t.Errorf("unexpected: %s", line)
		}
	}
}

// TestSessionCounter: a counter goes on in the next task of its session, also after a restart.
func TestSessionCounter(t *testing.T) {
	s := open(t)
	s.append("a", worker(1), counted(`{"scope":"session","baseline":true,"inputTokens":100,"outputTokens":10}`), counted(`{"scope":"session","inputTokens":150,"outputTokens":15}`), "TaskSucceeded")
	s.append("b", worker(1), counted(`{"scope":"session","inputTokens":170,"outputTokens":15}`), "TaskSucceeded")
	s.restart(false)
	s.append("c", worker(1), counted(`{"scope":"session","inputTokens":200,"outputTokens":16}`))
	s.want("a/1 usage session  completed 50 5 - - complete", "b/1 usage session  completed 20 0 - - complete", "c/1 usage session  completed 30 1 - - complete")
}

// TestAsOf: a view shows the state of its time, whatever is recorded later, also if asOf is slightly in the future.
func TestAsOf(t *testing.T) {
	s := open(t)
	s.append("a", worker(1), begin(1))
	first := s.clock.Now()
	before := s.all(first)
	future := first.Add(time.Second)
	s.view(future)
	s.append("a", end(1, 1, 1)) // the clock says first, but a view of a later time was given
	s.append("b", worker(1), begin(1), end(1, 9, 9))
	if got := s.all(first); fmt.Sprint(got) != fmt.Sprint(before) || len(got) != 1 {
		t.Errorf("later the view of the same time shows %q, first %q", got, before)
	}
	if got := s.all(future); fmt.Sprint(got) != fmt.Sprint(before) {
		t.Errorf("what was recorded after the view is in it: %q", got)
	}
	s.clock.Step(time.Minute)
	s.want("a/1 1/1 call m completed 1 1 - - complete", "b/1 1/1 call m completed 9 9 - - complete")
	s.clock.SetTime(noon.Add(-time.Hour)) // the clock is set back
	s.restart(false)
	s.append("c", begin(1))
	s.clock.SetTime(noon.Add(time.Hour))
	if got := s.all(future); fmt.Sprint(got) != fmt.Sprint(before) {
		t.Errorf("after the clock was set back the view shows %q, first %q", got, before)
	}
}

// TestCalls: the start of a request is durable before Start returns, and a request that the process did not end is one
// gap after a restart.
func TestCalls(t *testing.T) {
	s := open(t)
	ask := func(id string) *ledger.Call {
		c, err := s.Start(t.Context(), usage.Observation{Namespace: "ns", AttemptID: id, CounterID: "1", Provider: "p", Model: "m", User: "u"})
		if err != nil {
			t.Fatal(err)
		}
		s.clock.Step(time.Second)
		return c
	}
	if err := ask("a").End(usage.Outcome{Counts: usage.Counts{InputTokens: new(int64(3)), OutputTokens: new(int64(4))}}, usage.StatusCompleted); err != nil {
		t.Fatal(err)
	}
	if err := ask("b").End(usage.Outcome{}, usage.StatusCancelled); err != nil {
		t.Fatal(err)
	}
	ask("c")
	open := "/c 1 call m started - - - -"
	done := []string{"/a 1 call m completed 3 4 - - complete", "/b 1 call m cancelled - - - - (usage not reported)"}
	s.want(append(done, open)...)
	for range 2 {
		s.restart(false)
		s.want(append(done, open+" (missing final usage)")...)
	}
}

// TestDeletedTask: usage outlives the task and its events.
func TestDeletedTask(t *testing.T) {
	s := open(t)
	s.append("a", worker(1), begin(1), end(1, 1, 1), begin(2))
	s.append("b", begin(1), end(1, 2, 2), "TaskSucceeded")
	for _, name := range []string{"a", "b"} {
		if err := s.log.DeleteStream(t.Context(), stream(name)); err != nil {
			t.Fatal(err)
		}
	}
	s.clock.Step(time.Hour)
	if _, err := s.log.Purge(t.Context()); err != nil {
		t.Fatal(err)
	}
	sorted(s, t, []string{"a/1 1/1 call m completed 1 1 - - complete", "a/1 2/1 call m started - - - - (missing final usage)", "b/1 1/1 call m completed 2 2 - - complete"})
}
