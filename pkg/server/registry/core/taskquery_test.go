// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package core_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apiserver/pkg/endpoints/request"
	clocktesting "k8s.io/utils/clock/testing"

	"github.com/platform-ai/platform/pkg/apis/core/v1alpha1"
	"github.com/platform-ai/platform/pkg/event"
	"github.com/platform-ai/platform/pkg/server/registry/coretest"
)

var noon = time.Date(2026, 5, 1, 12, 0, 0, 0, time.UTC)

// ended gives a task a start, in minutes before noon, an end after so many seconds, and tokens.
func (s *server) ended(name string, minutes, seconds int, tokens int64) {
	s.t.Helper()
	s.setStatus(name, func(st *v1alpha1.TaskStatus) {
		begin := metav1.NewTime(noon.Add(-time.Duration(minutes) * time.Minute))
		st.Phase, st.StartTime, st.CompletionTime = v1alpha1.TaskSucceeded, &begin, &metav1.Time{Time: begin.Add(time.Duration(seconds) * time.Second)}
		st.Usage = &v1alpha1.TaskUsage{InputTokens: &tokens, ModelRequests: 1}
	})
}

func (s *server) setStatus(name string, change func(*v1alpha1.TaskStatus)) {
	s.t.Helper()
	if _, err := s.Update(s.User(), "tasks/status", name, func(o runtime.Object) { change(&o.(*v1alpha1.Task).Status) }); err != nil {
		s.t.Fatal(err)
	}
}

// find creates a TaskQuery and returns the names that it finds.
func (s *server) find(spec v1alpha1.TaskQuerySpec) (string, *v1alpha1.TaskQueryStatus, error) {
	obj, err := s.Create(s.User(), "taskqueries", &v1alpha1.TaskQuery{Spec: spec})
	if err != nil {
		return "", nil, err
	}
	q := obj.(*v1alpha1.TaskQuery)
	names := make([]string, len(q.Status.Items))
	for i := range q.Status.Items {
		names[i] = q.Status.Items[i].Name
	}
	return strings.Join(names, " "), &q.Status, nil
}

// TestTaskQueries: tasks are found in every order and by every filter; what is unknown comes last.
func TestTaskQueries(t *testing.T) {
	t.Parallel()
	s := startAt(t, t.TempDir(), clocktesting.NewFakeClock(noon))
	for _, name := range []string{"c", "a", "running", "new", "b"} {
		s.mustTask(name, `{type: ai, prompt: "go to `+name+`\nand back", ai: {model: m-`+name+`}, agentRef: {name: writer-`+name+`}}`)
	}
	s.ended("a", 50, 60, 300)
	s.ended("b", 40, 7200, 20)
	s.ended("c", 30, 60, 1000)
	s.worker(s.Task("running"))
	s.setStatus("running", func(st *v1alpha1.TaskStatus) {
		st.StartTime = &metav1.Time{Time: noon.Add(-10 * time.Minute)}
		st.Conditions = []metav1.Condition{{Type: v1alpha1.ConditionWaitingForApproval, Status: metav1.ConditionTrue, Reason: "x", LastTransitionTime: metav1.Now()}}
	})
	if _, err := s.CreateNamed(s.User(), "tasks/events", "running", event.New(v1alpha1.EventModelRequestCompleted, v1alpha1.SeverityInfo, "", "", map[string]any{"inputTokens": 400, "outputTokens": 5})); err != nil {
		t.Fatal(err)
	}
	for want, specs := range map[string][]v1alpha1.TaskQuerySpec{
		"c a running new b": {{}, {OrderBy: v1alpha1.TasksByCreated}},
		"b new running a c": {{Descending: true}},
		"a b c running new": {{OrderBy: v1alpha1.TasksByStarted}},
		"running c b a new": {{OrderBy: v1alpha1.TasksByStarted, Descending: true}},
		"a c running b new": {{OrderBy: v1alpha1.TasksByDuration}},
		"b running a c new": {{OrderBy: v1alpha1.TasksByDuration, Descending: true}},
		"c running a b new": {{OrderBy: v1alpha1.TasksByTokens, Descending: true}},
		"b a running c new": {{OrderBy: v1alpha1.TasksByTokens}},
		"running new c b a": {{OrderBy: v1alpha1.TasksByName, Descending: true}},
		"c running":         {{MinTokens: 400}},
		"running b":         {{MinDuration: new(v1alpha1.Duration("10m")), OrderBy: v1alpha1.TasksByDuration}},
		"c running b": {{
			MinDuration: new(v1alpha1.Duration("601ms")), StartedAfter: "2026-05-01T11:20:00Z", StartedBefore: "2026-05-02", OrderBy: v1alpha1.TasksByDuration,
			Phases: []string{"Running", "Succeeded"}, Text: "R-", MinTokens: 10,
		}},
		"a":       {{StartedBefore: "2026-05-01T11:20:00Z"}, {Agent: "writer-a"}, {Text: "riter-A"}, {Text: "GO TO a"}, {Model: "m-a"}},
		"running": {{Phases: []string{"Running"}}, {Phases: []string{"WaitingForApproval", "Failed"}}, {Text: "RUNN"}},
		"new":     {{Phases: []string{"Pending"}}},
		"":        {{Agent: "Writer-a"}, {Model: "m"}, {Text: "back"}, {LabelSelector: "team=x"}, {Phases: []string{"Failed"}}},
	} {
		for _, spec := range specs {
			got, status, err := s.find(spec)
			if err != nil || got != want || status.Matched != int64(len(strings.Fields(want))) || status.Continue != "" {
				t.Errorf("%+v: %q %+v %v, want %q", spec, got, status, err, want)
			}
		}
	}
	_, status, err := s.find(v1alpha1.TaskQuerySpec{Phases: []string{"Running"}})
	if err != nil {
		t.Fatal(err)
	}
	if r := status.Items[0]; r.Phase != "WaitingForApproval" || *r.DurationSeconds != 600 || *r.InputTokens != 400 || *r.TotalTokens != 405 || r.Agent != "writer-running" || r.UID != s.Task("running").UID || r.Type != v1alpha1.TaskTypeAI ||
		r.Prompt != "go to running …" || r.Reason != "WaitingForApproval" {
		t.Errorf("summary: %+v", r)
	}
}

// TestTaskQueriesAreRefused: an error names the field.
func TestTaskQueriesAreRefused(t *testing.T) {
	t.Parallel()
	s := start(t)
	for field, spec := range map[string]v1alpha1.TaskQuerySpec{
		"labelSelector": {LabelSelector: "a in"}, "phases": {Phases: []string{"running"}}, "startedAfter": {StartedAfter: "yesterday"}, "startedBefore": {StartedBefore: "5"},
		"minDuration": {MinDuration: new(v1alpha1.Duration("-1s"))}, "limit": {Limit: -1}, "continue": {Continue: "x"}, "orderBy": {OrderBy: "size"}, "minTokens": {MinTokens: -1},
	} {
		if _, _, err := s.find(spec); !apierrors.IsBadRequest(err) || !strings.HasPrefix(err.Error(), field+": ") {
			t.Errorf("%s: %v", field, err)
		}
	}
}

// TestMostTasksOfAPage: however many tasks a page may have, it has at most 500. A minimum of a part of a second counts as a whole one.
func TestMostTasksOfAPage(t *testing.T) {
	t.Parallel()
	s := start(t)
	for i := range 501 {
		s.mustTask(fmt.Sprintf("t%03d", i), `{type: ai, prompt: go}`)
	}
	if _, status, err := s.find(v1alpha1.TaskQuerySpec{Limit: 10_000}); err != nil || len(status.Items) != 500 || status.Matched != 501 || status.Continue == "" {
		t.Errorf("%+v, %v", status, err)
	}
	s.ended("t000", 5, 1, 0)
	s.ended("t001", 5, 2, 0)
	if got, _, err := s.find(v1alpha1.TaskQuerySpec{MinDuration: new(v1alpha1.Duration("1500ms"))}); err != nil || got != "t001" {
		t.Errorf("%q, %v", got, err)
	}
}

// TestPagesOfTaskQueries: the pages of a query show the tasks of its beginning, each once, although tasks are made, change,
// use tokens and go meanwhile.
func TestPagesOfTaskQueries(t *testing.T) {
	t.Parallel()
	s := startAt(t, t.TempDir(), clocktesting.NewFakeClock(noon))
	for i := range 10 {
		name := fmt.Sprintf("t%d", i)
		s.mustTask(name, `{type: ai, prompt: go}`)
		s.ended(name, 60, i, int64(i/3)) // tokens repeat
	}
	running := s.mustTask("t10", `{type: ai, prompt: go}`)
	s.worker(running)
	use := func(tokens int) {
		t.Helper()
		if _, err := s.CreateNamed(s.User(), "tasks/events", "t10", event.New(v1alpha1.EventModelRequestCompleted, v1alpha1.SeverityInfo, "", "", map[string]any{"inputTokens": tokens})); err != nil {
			t.Fatal(err)
		}
	}
	use(1)
	spec := v1alpha1.TaskQuerySpec{OrderBy: v1alpha1.TasksByTokens, Descending: true, Limit: 3}
	first, status, err := s.find(spec)
	if err != nil {
		t.Fatal(err)
	}
	all := []string{first}
	use(1000)
	s.ended("t10", 1, 1, 5000)                 // it was before t0 and is now the first
	if _, _, err := s.find(spec); err != nil { // whoever begins now counts the later tokens
		t.Fatal(err)
	}
	s.mustTask("late", `{type: ai, prompt: go}`)
	s.ended("late", 1, 1, 1)
	s.Remove("tasks", "t1")
	for status.Continue != "" {
		spec.Continue = status.Continue
		var names string
		if names, status, err = s.find(spec); err != nil {
			t.Fatal(err)
		}
		if status.Matched != 11 {
			t.Errorf("matched: %d", status.Matched)
		}
		all = append(all, names)
	}
	if got, want := strings.Join(all, " "), "t9 t6 t7 t8 t10 t3 t4 t5 t0 t1 t2"; got != want {
		t.Errorf("%s\nwant %s", got, want)
	}
	other := spec
	other.Limit = 100 // a token is good whatever the size of the page
	if _, _, err := s.find(other); err != nil {
		t.Error(err)
	}
	elsewhere := request.WithNamespace(s.User(), "other")
	if _, err := s.Create(elsewhere, "taskqueries", &v1alpha1.TaskQuery{Spec: spec}); !apierrors.IsBadRequest(err) || !strings.Contains(err.Error(), "another query") {
		t.Errorf("continue in another namespace: %v", err)
	}
	other.Descending = false
	if _, _, err := s.find(other); !apierrors.IsBadRequest(err) || !strings.Contains(err.Error(), "another query") {
		t.Errorf("continue of another query: %v", err)
	}
}

// TestTaskQueriesOfOthers: who may not list tasks finds none, and a worker asks nothing.
func TestTaskQueriesOfOthers(t *testing.T) {
	t.Parallel()
	s := start(t)
	a := s.mustTask("a", `{type: ai, prompt: go}`)
	if _, err := s.Create(s.As(coretest.Stranger, nil), "taskqueries", &v1alpha1.TaskQuery{}); !apierrors.IsForbidden(err) {
		t.Errorf("without the right to list tasks: %v", err)
	}
	if _, err := s.Create(s.worker(a), "taskqueries", &v1alpha1.TaskQuery{}); !apierrors.IsForbidden(err) {
		t.Errorf("a worker: %v", err)
	}
}

// BenchmarkTaskQuery sorts 20,000 tasks by tokens.
func BenchmarkTaskQuery(b *testing.B) {
	s := &server{coretest.Start(b), b}
	const n = 20_000
	for i := range n {
		name := fmt.Sprintf("t%d", i)
		s.mustTask(name, `{type: ai, prompt: "Read the report, and write down what it says.", agentRef: {name: writer}}`)
		s.ended(name, 60, i%1000, int64(i*7919%100_000))
	}
	for _, limit := range []int32{100, 500} {
		b.Run(fmt.Sprintf("page of %d", limit), func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if _, status, err := s.find(v1alpha1.TaskQuerySpec{OrderBy: v1alpha1.TasksByTokens, Descending: true, Limit: limit}); err != nil || status.Matched != n {
					b.Fatal(status, err)
				}
			}
		})
	}
}
