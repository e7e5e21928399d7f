// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package core_test

import (
	"fmt"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apiserver/pkg/registry/rest"

	"github.com/platform-ai/platform/pkg/apis/core/v1alpha1"
	"github.com/platform-ai/platform/pkg/server/registry/coretest"
	"github.com/platform-ai/platform/pkg/storage/eventlog"
)

func (s *server) plan(task string) (*v1alpha1.TaskPlan, error) {
	obj, err := s.Storage["tasks/plan"].(rest.Getter).Get(coretest.WithPath(s.User(), "tasks/plan"), task, &metav1.GetOptions{})
	if err != nil {
		return nil, err
	}
	return obj.(*v1alpha1.TaskPlan), nil
}

// planEvents returns the stored plans of a task.
func (s *server) planEvents(task string) []*v1alpha1.ExecutionEvent {
	s.t.Helper()
	p, err := s.Log.List(s.t.Context(), eventlog.Query{Namespace: "default", Task: task, Types: []v1alpha1.EventType{v1alpha1.EventPlanUpdated}})
	if err != nil {
		s.t.Fatal(err)
	}
	return p.Items
}

// TestPlan: the newest plan is the task's, from the first one on until the task ends. A repeated request stores nothing.
func TestPlan(t *testing.T) {
	s := start(t)
	a := s.mustTask("a", `{type: ai, prompt: p}`)
	by := s.worker(a)
	_, err := s.plan("a")
	checkStatus(t, err, 404, "its agent has not written one")
	_, err = s.plan("nosuch")
	checkStatus(t, err, 404, `"nosuch" not found`)
	update := func(p v1alpha1.TaskPlan) *v1alpha1.TaskPlan {
		t.Helper()
		got, err := s.CreateNamed(by, "tasks/plan", "a", &p)
		if err != nil {
			t.Fatal(err)
		}
		return got.(*v1alpha1.TaskPlan)
	}
	first := update(v1alpha1.TaskPlan{Summary: "begun", PlanDocument: "# One\n- [ ] the key is ghp_abcdefghijklmnopqrstuvwxyz0123456789", ProgressPct: new(int32(10))})
	if _, err := s.Update(s.User(), "tasks/status", "a", func(o runtime.Object) { o.(*v1alpha1.Task).Status.Iteration = 2 }); err != nil {
		t.Fatal(err)
	}
	want := v1alpha1.TaskPlan{Summary: "two\nlines", PlanDocument: "# Two", GoalComplete: true}
	for range 3 {
		update(want)
	}
	got, err := s.plan("a")
	if err != nil {
		t.Fatal(err)
	}
	if got.Name != "a" || got.Namespace != "default" || got.Iteration != 2 || got.Summary != want.Summary || got.PlanDocument != want.PlanDocument ||
		!got.GoalComplete || got.ProgressPct != nil || !got.CreatedAt.Equal(first.UpdatedAt) || !got.UpdatedAt.After(first.UpdatedAt.Time) {
		t.Errorf("plan: %+v", got)
	}
	events := s.planEvents("a")
	if len(events) != 2 || strings.Contains(events[0].ContentText, "ghp_") || events[0].Summary != "plan updated, 10%: begun" || events[1].Summary != "plan updated, goal complete: two lines" {
		t.Errorf("events: %+v", events)
	}
	if update(v1alpha1.TaskPlan{PlanDocument: "# One"}); len(s.planEvents("a")) != 3 {
		t.Error("an earlier plan cannot be stored again")
	}
	s.SetPhase("a", v1alpha1.TaskSucceeded)
	_, err = s.plan("a")
	checkStatus(t, err, 404, "it is Succeeded")
	if len(s.planEvents("a")) != 3 {
		t.Error("the events of the plan went with it")
	}
}

// TestPlanIsRefused: a plan that cannot be stored completely is refused, and so is everybody but the task's own worker.
func TestPlanIsRefused(t *testing.T) {
	s := start(t)
	a, b := s.mustTask("a", `{type: ai, prompt: p}`), s.mustTask("b", `{type: ai, prompt: p}`)
	most := v1alpha1.TaskPlan{PlanDocument: strings.Repeat("ü", 32768), Summary: strings.Repeat("ü", 4096)}
	if _, err := s.CreateNamed(s.worker(a), "tasks/plan", "a", &most); err != nil {
		t.Fatal(err)
	}
	if got, err := s.plan("a"); err != nil || got.PlanDocument != most.PlanDocument || got.Summary != most.Summary {
		t.Errorf("the longest plan was cut: %d, %d, %v", len(got.PlanDocument), len(got.Summary), err)
	}
	secrets := strings.Repeat("password=a\n", 32768/11)
	for _, tc := range []struct {
		plan v1alpha1.TaskPlan
		text string
	}{
		{v1alpha1.TaskPlan{Summary: "x"}, "planDocument: is required"},
		{v1alpha1.TaskPlan{PlanDocument: most.PlanDocument + "x"}, "planDocument: must be at most 32768 characters, and has 32769"},
		{v1alpha1.TaskPlan{PlanDocument: "x", Summary: most.Summary + "x"}, "summary: must be at most 4096 characters, and has 4097"},
		{v1alpha1.TaskPlan{PlanDocument: secrets}, "after its secrets were removed"},
		{v1alpha1.TaskPlan{PlanDocument: "x", ProgressPct: new(int32(101))}, "progressPct: must be from 0 to 100, not 101"},
		{v1alpha1.TaskPlan{PlanDocument: "x", ProgressPct: new(int32(-1))}, "progressPct: must be from 0 to 100, not -1"},
	} {
		_, err := s.CreateNamed(s.worker(a), "tasks/plan", "a", &tc.plan)
		checkStatus(t, err, 400, tc.text)
	}
	_, err := s.CreateNamed(s.worker(b), "tasks/plan", "a", &v1alpha1.TaskPlan{PlanDocument: "x"})
	checkStatus(t, err, 403, "another task")
	_, err = s.CreateNamed(s.worker(a), "tasks/events", "a", ev(v1alpha1.EventPlanUpdated))
	checkStatus(t, err, 403, "PlanUpdated events must use controller-owned paths")
	s.SetPhase("a", v1alpha1.TaskFailed)
	_, err = s.CreateNamed(s.worker(a), "tasks/plan", "a", &v1alpha1.TaskPlan{PlanDocument: "x"})
	checkStatus(t, err, 403, "has ended")
	_, err = s.CreateNamed(s.User(), "tasks/plan", "a", &v1alpha1.TaskPlan{PlanDocument: "x"})
	checkStatus(t, err, 409, "has ended")
	if n := len(s.planEvents("a")); n != 1 {
		t.Errorf("%d plans are stored", n)
	}
}

// TestNewestOfMany: the newest plan is found among many events, and a task of the same name that came later has none.
func TestNewestOfMany(t *testing.T) {
	s := start(t)
	a := s.mustTask("a", `{type: ai, prompt: p}`)
	by := s.worker(a)
	for i := range 50 {
		for _, do := range []func() (runtime.Object, error){
			func() (runtime.Object, error) {
				return s.CreateNamed(by, "tasks/plan", "a", &v1alpha1.TaskPlan{PlanDocument: fmt.Sprint(i)})
			},
			func() (runtime.Object, error) {
				return s.CreateNamed(by, "tasks/events", "a", ev(v1alpha1.EventModelMessage))
			},
		} {
			if _, err := do(); err != nil {
				t.Fatal(err)
			}
		}
		if p, err := s.plan("a"); err != nil || p.PlanDocument != fmt.Sprint(i) {
			t.Fatalf("%d: %+v, %v", i, p, err)
		}
	}
	s.Remove("tasks", "a")
	s.mustTask("a", `{type: ai, prompt: p}`)
	_, err := s.plan("a")
	checkStatus(t, err, 404, "has no plan")
}
