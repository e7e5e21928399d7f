// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package task

import (
	"context"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/platform-ai/platform/pkg/apis/core/v1alpha1"
	"github.com/platform-ai/platform/pkg/controller/step"
	"github.com/platform-ai/platform/pkg/plan/refusal"
)

func cancelRequested(k *v1alpha1.Task) {
	setCondition(&k.Status, k.Generation, v1alpha1.ConditionCancelRequested, metav1.ConditionTrue, "CancelRequested", "enough")
}

// TestFirstEvent: the first event of a task is stored alone only if the task has to wait.
func TestFirstEvent(t *testing.T) {
	waits := queued{v1alpha1.ReasonTaskLimitReached, step.Wait{Reason: "full"}}
	for _, tc := range []struct {
		name    string
		change  func(*v1alpha1.Task)
		resolve error
		slot    error
		fails   error
		want    string
		events  []string
		phase   v1alpha1.TaskPhase
	}{
		{name: "starts at once", want: "done", phase: v1alpha1.TaskRunning},
		{name: "waits", slot: waits, want: "wait 0s", events: []string{"TaskCreated"}, phase: v1alpha1.TaskPending},
		{name: "cannot be stored", slot: waits, fails: errBoom, want: "boom", events: []string{"TaskCreated"}},
		{name: "server away", resolve: errBoom, want: "boom", events: []string{"TaskCreated"}, phase: v1alpha1.TaskPending},
		{name: "refused", resolve: refusal.New(v1alpha1.ReasonRefused, "no"), want: "done", phase: v1alpha1.TaskFailed},
		{name: "cancelled", change: cancelRequested, events: []string{"TaskCreated"}, want: "done", phase: v1alpha1.TaskRunning},
	} {
		t.Run(tc.name, func(t *testing.T) {
			k, l := task(), &eventLog{err: tc.fails}
			if tc.change != nil {
				tc.change(k)
			}
			if err := (begin{append: l.append}).do(t.Context(), k); err != nil {
				t.Fatal(err)
			}
			got := admit{
				credentials: noCredentials,
				append:      l.append, now: noon, newID: func() types.UID { return "job" }, end: l.finish,
				resolve:     func(context.Context, *v1alpha1.Task) (*resolved, error) { return &resolved{}, tc.resolve },
				lockSession: func(context.Context, *v1alpha1.Task) error { return nil },
				takePlace:   noPlace,
				leavePlace:  func(context.Context, *v1alpha1.Task) error { return nil },
				takeSlot:    func(context.Context, *v1alpha1.Task) error { return tc.slot },
				leaveSlot:   func(context.Context, *v1alpha1.Task) error { return nil },
			}.do(t.Context(), k)
			outcomeIs(t, got, tc.want)
			if d := cmp.Diff(tc.events, l.events); d != "" || k.Status.Phase != tc.phase || k.Status.ObservedGeneration != k.Generation {
				t.Errorf("phase %q, observed %d, events:\n%s", k.Status.Phase, k.Status.ObservedGeneration, d)
			}
		})
	}
}

// TestFirstEventIsNotForgotten: whatever is stored before an attempt is recorded as started comes after the first event.
func TestFirstEventIsNotForgotten(t *testing.T) {
	for want, k := range map[int]*v1alpha1.Task{
		1: task(isStarted),
		2: task(),
	} {
		if got := first(k, phaseChanged(k, "", v1alpha1.TaskFailed, "")); len(got) != want {
			t.Errorf("%d events, want %d", len(got), want)
		}
	}
}
