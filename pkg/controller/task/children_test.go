// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package task

import (
	"context"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/platform-ai/platform/pkg/apis/core/v1alpha1"
)

// TestShownChildren: the status of a task that has no parent lists its children, and the status of a schedule its runs. The
// result of a child is read once.
func TestShownChildren(t *testing.T) {
	member := func(name string, phase v1alpha1.TaskPhase) v1alpha1.Task {
		var c v1alpha1.Task
		c.Name, c.Status.Phase = name, phase
		return c
	}
	schedules := func(t *v1alpha1.Task) { t.Spec.Schedule = "* * * * *" }
	for _, tc := range []struct {
		name   string
		change []func(*v1alpha1.Task)
		want   []v1alpha1.ChildTask
		read   int
	}{
		{name: "none", want: nil},
		{name: "delegated", change: []func(*v1alpha1.Task){hasChildren}, want: []v1alpha1.ChildTask{{Name: "kid", Phase: v1alpha1.TaskPending}}},
		{name: "runs of a schedule", change: []func(*v1alpha1.Task){schedules}, read: 1, want: []v1alpha1.ChildTask{
			{Name: "run1", Phase: v1alpha1.TaskSucceeded, Result: "done"}, {Name: "run2", Phase: v1alpha1.TaskRunning},
		}},
		{name: "a child", change: []func(*v1alpha1.Task){hasChildren, schedules, func(t *v1alpha1.Task) {
			t.Labels = map[string]string{v1alpha1.LabelParentTask: "p"}
		}}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			read := 0
			s := children{
				shown: func(context.Context, *v1alpha1.Task) ([]v1alpha1.Task, error) {
					return []v1alpha1.Task{member("kid", "")}, nil
				},
				runs: func(context.Context, *v1alpha1.Task) ([]v1alpha1.Task, error) {
					return []v1alpha1.Task{member("run1", v1alpha1.TaskSucceeded), member("run2", v1alpha1.TaskRunning)}, nil
				},
				result: func(context.Context, *v1alpha1.Task) (string, bool, error) {
					read++
					return "done", true, nil
				},
			}
			tk := task(tc.change...)
			for range 2 {
				if err := s.do(t.Context(), tk); err != nil {
					t.Fatal(err)
				}
			}
			if diff := cmp.Diff(tc.want, tk.Status.ChildTasks); diff != "" || read != tc.read {
				t.Errorf("%d results read; -want +got:\n%s", read, diff)
			}
		})
	}
}
