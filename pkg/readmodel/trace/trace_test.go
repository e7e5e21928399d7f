// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package trace

import (
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/cockroachdb/datadriven"
	"github.com/google/go-cmp/cmp"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/platform-ai/platform/pkg/apis/core/v1alpha1"
	"github.com/platform-ai/platform/pkg/event"
)

// of folds events and collects the rows.
func of(events []*v1alpha1.ExecutionEvent) *v1alpha1.TaskTrace {
	t := &v1alpha1.TaskTrace{}
	f := New("t", func(g Group, row any) { collect(t, g, row) })
	for _, e := range events {
		f.Add(e)
	}
	f.End()
	t.Usage, t.TerminalEvent = f.Usage(), f.TerminalEvent()
	return t
}

func collect(t *v1alpha1.TaskTrace, g Group, row any) {
	switch r := row.(type) {
	case *v1alpha1.TraceModelRequest:
		t.ModelRequests = append(t.ModelRequests, *r)
	case *v1alpha1.TraceToolCall:
		t.ToolCalls = append(t.ToolCalls, *r)
	case *v1alpha1.TraceChildTask:
		t.ChildTasks = append(t.ChildTasks, *r)
	case *v1alpha1.TraceWorkspace:
		t.Workspace = append(t.Workspace, *r)
	case *v1alpha1.TraceArtifact:
		t.Artifacts = append(t.Artifacts, *r)
	case *v1alpha1.TraceSegment:
		t.CriticalPath = append(t.CriticalPath, *r)
	case *v1alpha1.ExecutionEvent:
		t.RawUnpaired = append(t.RawUnpaired, *r)
	case *v1alpha1.TraceProblem:
		if g == Errors {
			t.Errors = append(t.Errors, *r)
		} else {
			t.Warnings = append(t.Warnings, *r)
		}
	default:
		panic(fmt.Sprintf("%s: %T", g, row))
	}
}

// TestScripts runs testdata. Each line of a fold is an event, preceded by the milliseconds since the
// previous one: "+5 ToolCallStarted tool=x call=y severity=z at=1/20 text {content}".
func TestScripts(t *testing.T) {
	datadriven.Walk(t, "testdata", func(t *testing.T, path string) {
		datadriven.RunTest(t, path, func(t *testing.T, d *datadriven.TestData) string {
			if d.Cmd != "fold" {
				t.Fatalf("unknown command %s", d.Cmd)
			}
			var events []*v1alpha1.ExecutionEvent
			at := start
			for line := range strings.Lines(d.Input) {
				e, wait := parse(t, strings.TrimSpace(line))
				at = at.Add(wait)
				e.Seq, e.CreatedAt = int64(len(events)+1), metav1.NewMicroTime(at)
				events = append(events, e)
			}
			checkPrefixes(t, events)
			checkGroups(t, events)
			return show(of(events))
		})
	})
}

var start = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)

func parse(t *testing.T, line string) (*v1alpha1.ExecutionEvent, time.Duration) {
	line, body, found := strings.Cut(line, "{")
	words := strings.Fields(line)
	if len(words) < 2 {
		t.Fatalf("line %q", line)
	}
	ms, err := strconv.Atoi(strings.TrimPrefix(words[0], "+"))
	if err != nil {
		t.Fatal(err)
	}
	e := &v1alpha1.ExecutionEvent{Type: v1alpha1.EventType(words[1]), TaskName: "t"}
	if found {
		e.Content = &apiextensionsv1.JSON{Raw: []byte("{" + body)}
	}
	for _, w := range words[2:] {
		switch k, v, ok := strings.Cut(w, "="); {
		case ok && k == "tool":
			e.ToolName = v
		case ok && k == "call":
			e.ToolCallID = v
		case ok && k == "at": // attempt/milliseconds of the worker's clock
			attempt, at, _ := strings.Cut(v, "/")
			n, err := strconv.Atoi(attempt)
			ms, err2 := strconv.ParseInt(at, 10, 64)
			if err != nil || err2 != nil {
				t.Fatal(err, err2)
			}
			e.Attempt, e.ElapsedMicros = int32(n), new(ms*1000)
		case ok && k == "severity":
			e.Severity = v1alpha1.EventSeverity(v)
		default:
			e.Summary = strings.TrimSpace(e.Summary + " " + w)
		}
	}
	if err := event.Validate(e); err != nil {
		t.Fatal(err)
	}
	event.Sanitize(e)
	return e, time.Duration(ms) * time.Millisecond
}

// show prints a trace in lines that are easy to read in a diff.
func show(t *v1alpha1.TaskTrace) string {
	var b strings.Builder
	p := func(format string, args ...any) { fmt.Fprintf(&b, format+"\n", args...) }
	for _, r := range t.ModelRequests {
		p("model %s%s", span(&r.TraceSpan), words("of", r.Provider+"/"+r.Model, "stop", r.StopReason, "in", num(r.InputTokens), "out", num(r.OutputTokens), "cached", num(r.CachedInputTokens),
			"turn", count(r.Iteration), "try", count(r.Attempt)))
	}
	for _, r := range t.ToolCalls {
		p("tool %s%s", span(&r.TraceSpan), words("of", r.Name, "args", num(r.ArgumentBytes), "result", num(r.ResultLength), "approval", r.ApprovalID, "turn", count(r.Iteration)))
	}
	for _, r := range t.ChildTasks {
		p("%s %s%s", r.Kind, span(&r.TraceSpan), words("name", r.Name, "agent", r.Agent, "result", r.Result))
	}
	for _, r := range t.Workspace {
		p("workspace %d %s %q", r.Seq, r.Status, r.Summary)
	}
	for _, r := range t.Artifacts {
		p("artifact %d %s %s", r.Seq, r.Status, r.Name)
	}
	for _, r := range t.Errors {
		p("error %d %s %s: %s", r.Seq, r.Severity, r.Type, r.Message)
	}
	for _, r := range t.Warnings {
		p("warning %d %s: %s", r.Seq, r.Type, r.Message)
	}
	for _, r := range t.RawUnpaired {
		p("unpaired %d %s", r.Seq, r.Type)
	}
	for _, r := range t.CriticalPath {
		p("path %4d+%dms %s%s", r.StartedAt.Sub(start).Milliseconds(), r.DurationMs, r.Kind, words("", r.ID, "", r.Name, "", span2(r.StartSeq, r.EndSeq)))
	}
	if u := t.Usage; u != nil {
		p("usage requests=%d unreported=%d%s", u.ModelRequests, u.UnreportedRequests, words("in", num(u.InputTokens), "out", num(u.OutputTokens), "cached", num(u.CachedInputTokens)))
	}
	if t.TerminalEvent != nil {
		p("terminal %d %s", t.TerminalEvent.Seq, t.TerminalEvent.Type)
	}
	return b.String()
}

func span(s *v1alpha1.TraceSpan) string {
	text := fmt.Sprintf("%s %s %s", s.ID, s.Status, span2(s.StartSeq, s.EndSeq))
	if s.DurationMs != nil {
		text += fmt.Sprintf(" %dms", *s.DurationMs)
	}
	if s.Error != "" {
		text += fmt.Sprintf(" error=%q", s.Error)
	}
	return text
}

func span2(from, to int64) string {
	switch {
	case from == 0:
		return ""
	case to == 0:
		return fmt.Sprintf("%d..", from)
	}
	return fmt.Sprintf("%d..%d", from, to)
}

func words(pairs ...string) string {
	text := ""
	for i := 0; i < len(pairs); i += 2 {
		switch {
		case pairs[i+1] == "" || pairs[i+1] == "/":
		case pairs[i] == "":
			text += " " + pairs[i+1]
		default:
			text += " " + pairs[i] + "=" + pairs[i+1]
		}
	}
	return text
}

func num(n *int64) string {
	if n == nil {
		return ""
	}
	return strconv.FormatInt(*n, 10)
}

func count(n int64) string {
	if n == 0 {
		return ""
	}
	return strconv.FormatInt(n, 10)
}

// checkGroups checks that the events of Types are sufficient for a group.
func checkGroups(t *testing.T, events []*v1alpha1.ExecutionEvent) {
	t.Helper()
	for _, g := range Groups() {
		whole, part := rowsOf(g, events, nil), rowsOf(g, events, g.Types())
		if d := cmp.Diff(whole, part); d != "" {
			t.Fatalf("%s from its own events alone (-all +own):\n%s\n%s", g, d, script(events))
		}
	}
}

// rowsOf returns the rows of a group as JSON.
func rowsOf(g Group, events []*v1alpha1.ExecutionEvent, types []v1alpha1.EventType) []string {
	take := map[v1alpha1.EventType]bool{}
	for _, x := range types {
		take[x] = true
	}
	var rows []string
	f := New("t", func(to Group, row any) {
		if to == g {
			b, err := json.Marshal(row)
			if err != nil {
				panic(err)
			}
			rows = append(rows, string(b))
		}
	})
	for _, e := range events {
		if types == nil || take[e.Type] {
			f.Add(e)
		}
	}
	f.End()
	return rows
}
