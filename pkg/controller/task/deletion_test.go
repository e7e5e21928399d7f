// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package task

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"testing"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/platform-ai/platform/pkg/apis/core/v1alpha1"
	"github.com/platform-ai/platform/pkg/controller/executor"
)

func hasChildren(t *v1alpha1.Task) { t.Status.HasChildren = true }

func waitsForChildren(t *v1alpha1.Task) {
	hasChildren(t)
	setCondition(&t.Status, 1, v1alpha1.ConditionWaitingForChildren, metav1.ConditionTrue, v1alpha1.ReasonChildrenActive, "")
}

// kids returns children in the given phases.
func kids(phases ...v1alpha1.TaskPhase) []v1alpha1.Task {
	list := make([]v1alpha1.Task, len(phases))
	for i := range list {
		list[i].Status = v1alpha1.TaskStatus{Phase: phases[i], Delegation: &v1alpha1.TaskDelegation{ParentUID: "u"}}
	}
	return list
}

func TestDeletionAndCancel(t *testing.T) {
	alive := runs{state: executor.State{ID: "job", Phase: executor.Running}}
	over := runs{state: executor.State{ID: "job", Phase: executor.Exited, Signal: "terminated", ExitCode: -1}}
	succeeded := runs{state: executor.State{ID: "job", Phase: executor.Exited}}
	none := runs{err: executor.ErrNotFound}
	for _, tc := range []struct {
		name     string
		task     *v1alpha1.Task
		runs     runs
		children []v1alpha1.Task
		want     string
		end      string
		asked    []string
		dropped  bool
	}{
		{name: "neither", task: task(isStarted), runs: alive, want: "nil"},
		{name: "delete: run is stopped first", task: task(isStarted, deleted), runs: alive, want: "wait 5s", asked: []string{"stop"}},
		{name: "delete: then cancelled", task: task(isStarted, deleted), runs: over, want: "done", end: "Cancelled: the task was deleted"},
		{name: "delete: pending", task: task(pending, deleted), runs: none, want: "done", end: "Cancelled: the task was deleted"},
		{name: "delete: it had succeeded", task: task(isStarted, deleted), runs: succeeded, want: "done", end: "Succeeded: the task is complete"},
		{name: "delete: then cleaned up", task: task(isStarted, deleted, func(t *v1alpha1.Task) { t.Status.Phase = v1alpha1.TaskCancelled }), runs: over, want: "done", asked: []string{"remove"}, dropped: true},
		{name: "delete: a terminal task that runs is stopped", task: task(isStarted, deleted, func(t *v1alpha1.Task) { t.Status.Phase = v1alpha1.TaskFailed }), runs: alive, want: "wait 5s", asked: []string{"stop"}},
		{name: "delete: other finalizers", task: task(deleted, func(t *v1alpha1.Task) { t.Finalizers = []string{"x/y"} }), want: "done"},
		{name: "cancel: run is stopped first", task: task(isStarted, cancelAsked), runs: alive, want: "wait 5s", asked: []string{"stop"}},
		{name: "cancel: then cancelled", task: task(isStarted, cancelAsked), runs: over, want: "done", end: "Cancelled: the task was cancelled: enough"},
		{name: "cancel: pending", task: task(pending, cancelAsked), runs: none, want: "done", end: "Cancelled: the task was cancelled: enough"},
		{name: "cancel: too late", task: task(isStarted, cancelAsked), runs: succeeded, want: "done", end: "Succeeded: the task is complete"},
		{name: "cancel: it waits for its children", task: task(isStarted, waitsForChildren, cancelAsked), runs: succeeded, want: "done", end: "Cancelled: the task was cancelled: enough"},
		{name: "cancel: a child is alive", task: task(isStarted, hasChildren, cancelAsked), runs: succeeded, children: kids(v1alpha1.TaskSucceeded, v1alpha1.TaskRunning), want: "done", end: "Cancelled: the task was cancelled: enough"},
		{name: "cancel: too late, the children have ended", task: task(isStarted, hasChildren, cancelAsked), runs: succeeded, children: kids(v1alpha1.TaskSucceeded, v1alpha1.TaskFailed), want: "done", end: "Succeeded: the task is complete"},
		{name: "delete: it waits for its children", task: task(isStarted, waitsForChildren, deleted), runs: succeeded, want: "done", end: "Cancelled: the task was deleted"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			l := &eventLog{}
			dropped := false
			children := func(context.Context, *v1alpha1.Task) ([]v1alpha1.Task, error) { return tc.children, nil }
			d := deletion{forget: nothingForgotten, executor: &tc.runs, end: l.finish, children: children, dropFinalizer: func(context.Context, *v1alpha1.Task) error { dropped = true; return nil }}
			err := d.do(t.Context(), tc.task)
			if err == nil {
				err = cancel{executor: &tc.runs, end: l.finish, children: children}.do(t.Context(), tc.task)
			}
			outcomeIs(t, err, tc.want)
			end := ""
			if l.end != nil {
				end = string(l.end.phase) + ": " + l.end.message
			}
			if end != tc.end || dropped != tc.dropped {
				t.Errorf("end = %q, want %q; dropped = %v", end, tc.end, dropped)
			}
			if d := cmp.Diff(tc.asked, tc.runs.asked); d != "" {
				t.Error(d)
			}
		})
	}
}

// TestDeletionTakesWhatIsOwned: a task that is being deleted goes after the tasks that it owns, unless the deletion keeps
// them.
func TestDeletionTakesWhatIsOwned(t *testing.T) {
	dead := func(t *v1alpha1.Task) { t.Status.Phase = v1alpha1.TaskCancelled }
	leaving := kids(v1alpha1.TaskCancelled)
	leaving[0].DeletionTimestamp = &metav1.Time{Time: noon()}
	for _, tc := range []struct {
		name    string
		task    *v1alpha1.Task
		owned   []v1alpha1.Task
		want    string
		removed int
		dropped bool
	}{
		{name: "children", task: task(isStarted, dead, deleted, hasChildren), owned: kids(v1alpha1.TaskCancelled, v1alpha1.TaskRunning), want: "wait 0s", removed: 2},
		{name: "children that leave", task: task(isStarted, dead, deleted, hasChildren), owned: leaving, want: "wait 0s"},
		{name: "no children any more", task: task(isStarted, dead, deleted, hasChildren), want: "done", dropped: true},
		{name: "runs of a schedule", task: task(dead, deleted, func(t *v1alpha1.Task) { t.Spec.Schedule = "@daily" }), owned: kids(v1alpha1.TaskSucceeded), want: "wait 0s", removed: 1},
		{
			name: "orphans", task: task(isStarted, dead, deleted, hasChildren, func(t *v1alpha1.Task) {
				t.Finalizers = append(t.Finalizers, metav1.FinalizerOrphanDependents)
			}), owned: kids(v1alpha1.TaskCancelled), want: "done", dropped: true,
		},
	} {
		t.Run(tc.name, func(t *testing.T) {
			removed, dropped := 0, false
			d := deletion{
				forget:        nothingForgotten,
				executor:      &runs{err: executor.ErrNotFound},
				dropFinalizer: func(context.Context, *v1alpha1.Task) error { dropped = true; return nil },
				owned:         func(context.Context, *v1alpha1.Task) ([]v1alpha1.Task, error) { return tc.owned, nil },
				remove:        func(context.Context, *v1alpha1.Task) error { removed++; return nil },
			}
			outcomeIs(t, d.do(t.Context(), tc.task), tc.want)
			if removed != tc.removed || dropped != tc.dropped {
				t.Errorf("%d were removed, want %d; the finalizer was dropped: %v", removed, tc.removed, dropped)
			}
		})
	}
}

// TestDeletionOnAFullDisk: a task whose end cannot be stored because the disk is full is removed all the same. Any other
// error is tried again.
func TestDeletionOnAFullDisk(t *testing.T) {
	full := &apierrors.StatusError{ErrStatus: metav1.Status{Code: http.StatusInsufficientStorage, Reason: "InsufficientStorage"}}
	for name, tc := range map[string]struct {
		err     error
		dropped bool
	}{
		"full":  {fmt.Errorf("the end: %w", full), true},
		"other": {apierrors.NewServiceUnavailable("away"), false},
	} {
		t.Run(name, func(t *testing.T) {
			dropped := false
			d := deletion{
				forget:   nothingForgotten,
				executor: &runs{err: executor.ErrNotFound}, end: (&eventLog{err: tc.err}).finish,
				children:      func(context.Context, *v1alpha1.Task) ([]v1alpha1.Task, error) { return nil, nil },
				dropFinalizer: func(context.Context, *v1alpha1.Task) error { dropped = true; return nil },
			}
			if err := d.do(t.Context(), task(isStarted, deleted)); dropped != tc.dropped || !dropped && !errors.Is(err, tc.err) {
				t.Errorf("the finalizer was dropped: %v; %v", dropped, err)
			}
		})
	}
}
