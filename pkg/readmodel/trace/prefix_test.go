// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package trace

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/platform-ai/platform/pkg/apis/core/v1alpha1"
	"github.com/platform-ai/platform/pkg/event"
)

// checkPrefixes compares the trace of every prefix with the trace of the whole stream.
//
// Each list of rows that cannot change must be a prefix of the whole's list: workspace, artifacts, errors,
// warnings, unpaired ends. Spans of the prefix must be spans of the whole, in the same order. Ended spans
// must be identical, and for running spans everything known about their start. The critical path of the
// prefix, without its undecided end, must be the beginning of the whole's path. A terminal event must stay.
func checkPrefixes(t *testing.T, events []*v1alpha1.ExecutionEvent) {
	t.Helper()
	whole := of(events)
	for n := range events {
		part := of(events[:n])
		fail := func(what string, diff string) {
			if diff != "" {
				t.Fatalf("%s of the first %d events (-prefix +whole):\n%s\n%s", what, n, diff, script(events))
			}
		}
		fail("workspace", begins(part.Workspace, whole.Workspace))
		fail("artifacts", begins(part.Artifacts, whole.Artifacts))
		fail("errors", begins(part.Errors, whole.Errors))
		fail("unpaired", begins(part.RawUnpaired, whole.RawUnpaired))
		if part.TerminalEvent == nil { // else End may have warned of what began too late
			fail("warnings", begins(part.Warnings, whole.Warnings))
		}
		fail("requests", spans(part.ModelRequests, whole.ModelRequests, func(r v1alpha1.TraceModelRequest) v1alpha1.TraceSpan { return r.TraceSpan }))
		fail("calls", spans(part.ToolCalls, whole.ToolCalls, func(r v1alpha1.TraceToolCall) v1alpha1.TraceSpan { return r.TraceSpan }))
		fail("children", children(part.ChildTasks, whole.ChildTasks))
		fail("path", begins(decided(events[:n]), whole.CriticalPath))
		if part.TerminalEvent != nil && whole.TerminalEvent == nil {
			t.Fatal("the terminal event is gone")
		}
	}
}

func begins[R any](part, whole []R) string {
	whole = whole[:min(len(part), len(whole))]
	if len(part) == 0 || reflect.DeepEqual(part, whole) { // much faster than cmp
		return ""
	}
	return cmp.Diff(part, whole)
}

func spans[R any](part, whole []R, span func(R) v1alpha1.TraceSpan) string {
	if len(part) > len(whole) {
		return fmt.Sprintf("%d spans became %d", len(part), len(whole))
	}
	for i := range part {
		p, w := span(part[i]), span(whole[i])
		if p.Status == v1alpha1.SpanRunning {
			if p.ID != w.ID || p.StartSeq != w.StartSeq || p.StartedAt != w.StartedAt {
				return cmp.Diff(p, w)
			}
			continue
		}
		if !reflect.DeepEqual(part[i], whole[i]) {
			return cmp.Diff(part[i], whole[i])
		}
	}
	return ""
}

// children are shown once their name is known, so some may come between.
func children(part, whole []v1alpha1.TraceChildTask) string {
	at := map[int64]v1alpha1.TraceChildTask{}
	for _, c := range whole {
		at[c.StartSeq] = c
	}
	var same []v1alpha1.TraceChildTask
	for _, c := range part {
		same = append(same, at[c.StartSeq])
	}
	return spans(part, same, func(r v1alpha1.TraceChildTask) v1alpha1.TraceSpan { return r.TraceSpan })
}

// decided returns the critical path that a fold emits before its end.
func decided(events []*v1alpha1.ExecutionEvent) []v1alpha1.TraceSegment {
	var t v1alpha1.TaskTrace
	f := New("t", func(g Group, row any) { collect(&t, g, row) })
	for _, e := range events {
		f.Add(e)
	}
	return t.CriticalPath
}

// TestRandom folds random streams: events that are out of order, duplicated, lost or late, with and without
// ids.
func TestRandom(t *testing.T) {
	for seed := range uint64(200) {
		r := rand.New(rand.NewPCG(seed, 1))
		events := random(r, 10+r.IntN(50))
		checkPrefixes(t, events)
		checkGroups(t, events)
		checkPath(t, events)
		checkEveryEvent(t, events)
	}
}

// random makes events that use a few ids, with every type occurring now and then.
func random(r *rand.Rand, n int) []*v1alpha1.ExecutionEvent {
	usual := []v1alpha1.EventType{
		v1alpha1.EventModelRequestStarted, v1alpha1.EventModelRequestCompleted, v1alpha1.EventModelRequestStarted, v1alpha1.EventModelRequestFailed,
		v1alpha1.EventToolCallStarted, v1alpha1.EventToolCallCompleted, v1alpha1.EventToolCallStarted, v1alpha1.EventToolCallFailed,
		v1alpha1.EventApprovalRequested, v1alpha1.EventApprovalApproved, v1alpha1.EventApprovalDeclined, v1alpha1.EventTaskForkCreated,
	}
	pick := func(s ...string) string { return s[r.IntN(len(s))] }
	var events []*v1alpha1.ExecutionEvent
	at := start
	for i := range n {
		typ := usual[r.IntN(len(usual))]
		if r.IntN(8) == 0 {
			all := event.Types()
			typ = all[r.IntN(len(all))]
		}
		c := map[string]any{"iteration": 1 + r.IntN(3), "model": pick("a", "b", "")}
		id := pick("", "1", "2")
		for key, value := range map[string]string{
			pick("requestID", "id", "modelRequestID", "model_request_id"): id, "approvalID": pick("p", "q"), "newTask": pick("t", "f", "g"), "taskName": pick("", "c"),
		} {
			if value != "" {
				c[key] = value
			}
		}
		raw, err := json.Marshal(c)
		if err != nil {
			panic(err)
		}
		e := &v1alpha1.ExecutionEvent{
			Type: typ, Seq: int64(i + 1), TaskName: "t", Severity: v1alpha1.EventSeverity(pick("info", "warning", "error")),
			ToolName: pick("x", "delegate_task", ""), ToolCallID: id, Content: &apiextensionsv1.JSON{Raw: raw},
		}
		event.Sanitize(e)
		at = at.Add(time.Duration(r.IntN(4)) * time.Millisecond)
		e.CreatedAt = metav1.NewMicroTime(at)
		events = append(events, e)
	}
	return events
}

// checkPath checks that the parts of a path follow one another without gaps.
func checkPath(t *testing.T, events []*v1alpha1.ExecutionEvent) {
	t.Helper()
	whole := of(events)
	at := start
	if len(events) > 0 {
		at = events[0].CreatedAt.Time
	}
	for i, s := range whole.CriticalPath {
		if !s.StartedAt.Time.Equal(at) || s.DurationMs < 0 {
			t.Fatalf("part %d of the path begins at %v, not %v, and takes %d ms\n%s", i, s.StartedAt, at, s.DurationMs, script(events))
		}
		at = at.Add(time.Duration(s.DurationMs) * time.Millisecond)
	}
	if i := slices.IndexFunc(events, func(e *v1alpha1.ExecutionEvent) bool { return event.Terminal(e.Type) }); i >= 0 && !at.Equal(events[i].CreatedAt.Time) {
		t.Fatalf("the path ends at %v, the task at %v\n%s", at, events[i].CreatedAt, script(events))
	}
}

// checkEveryEvent checks that each start and each end is in the trace exactly once, and each request in the
// usage.
func checkEveryEvent(t *testing.T, events []*v1alpha1.ExecutionEvent) {
	t.Helper()
	whole := of(events)
	seen := map[int64]int{}
	for _, r := range whole.ModelRequests {
		seen[r.StartSeq]++
		seen[r.EndSeq]++
	}
	for _, r := range whole.ToolCalls {
		seen[r.StartSeq]++
		seen[r.EndSeq]++
	}
	for _, r := range whole.RawUnpaired {
		seen[r.Seq]++
	}
	for _, e := range events {
		want := 0
		for _, kind := range [...]string{"ModelRequest", "ToolCall"} {
			if strings.HasPrefix(string(e.Type), kind) && e.Type != v1alpha1.EventToolCallJudged { // that one is no part of a span
				want = 1
			}
		}
		if seen[e.Seq] != want {
			t.Fatalf("event %d, %s, is in the trace %d times\n%s", e.Seq, e.Type, seen[e.Seq], script(events))
		}
	}
}

// script returns a stream in the language of testdata.
func script(events []*v1alpha1.ExecutionEvent) string {
	var b strings.Builder
	last := start
	for _, e := range events {
		fmt.Fprintf(&b, "+%d %s", e.CreatedAt.Sub(last).Milliseconds(), e.Type)
		last = e.CreatedAt.Time
		b.WriteString(words("tool", e.ToolName, "call", e.ToolCallID, "severity", string(e.Severity), "", e.Summary))
		if e.Content != nil {
			b.WriteString(" " + string(e.Content.Raw))
		}
		b.WriteString("\n")
	}
	return b.String()
}

// TestMemoryIsBounded folds long streams of spans that never end, or end late, and checks how much the fold
// keeps.
func TestMemoryIsBounded(t *testing.T) {
	const n = 20 * window
	started := func(i int) *v1alpha1.ExecutionEvent {
		return &v1alpha1.ExecutionEvent{Type: v1alpha1.EventToolCallStarted, Seq: int64(i + 1), ToolName: "x", ToolCallID: fmt.Sprint(i)}
	}
	rows := map[Group]int{}
	open := New("t", func(g Group, _ any) { rows[g]++ })
	for i := range n {
		open.Add(started(i))
		check(t, open)
	}
	open.End()
	if rows[ToolCalls] != n || rows[Warnings] < n-window {
		t.Errorf("of %d calls without an end: %d rows, %d warnings", n, rows[ToolCalls], rows[Warnings])
	}

	var calls []v1alpha1.TraceToolCall
	long := New("t", func(g Group, row any) {
		if r, ok := row.(*v1alpha1.TraceToolCall); ok {
			calls = append(calls, *r)
		}
	})
	long.Add(started(0))
	for i := 1; i < n; i++ {
		e := started(i)
		long.Add(e)
		end := *e
		end.Type = v1alpha1.EventToolCallCompleted
		long.Add(&end)
		check(t, long)
	}
	end := started(0)
	end.Type, end.Seq = v1alpha1.EventToolCallCompleted, n+1
	long.Add(end)
	long.End()
	i := slices.IndexFunc(calls, func(c v1alpha1.TraceToolCall) bool { return c.StartSeq == 1 })
	if len(calls) != n || calls[i].Status != v1alpha1.SpanCompleted || calls[i].EndSeq != n+1 {
		t.Errorf("%d of %d calls; the one around all others: %+v", len(calls), n, calls[i])
	}
}

func check(t *testing.T, f *Fold) {
	t.Helper()
	way := 0
	for p := f.path.last; p != nil; p = p.before {
		way++
	}
	if len(f.tools.rows) > window || len(f.path.running) > window+1 || way > window {
		t.Fatalf("held: %d calls, %d running, %d parts", len(f.tools.rows), len(f.path.running), way)
	}
}
