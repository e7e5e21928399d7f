// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package task

import (
	"context"

	"k8s.io/apimachinery/pkg/api/meta"

	"github.com/platform-ai/platform/pkg/apis/core/v1alpha1"
	"github.com/platform-ai/platform/pkg/controller/executor"
	"github.com/platform-ai/platform/pkg/controller/step"
)

// noReason is the reason that tasks/cancel records if the caller gave none.
const noReason = "cancellation was requested"

// cancel ends a task whose cancellation was requested.
type cancel struct {
	executor executor.Executor
	end      endFunc
	// children returns what the task delegated.
	children func(context.Context, *v1alpha1.Task) ([]v1alpha1.Task, error)
}

func (s cancel) do(ctx context.Context, t *v1alpha1.Task) error {
	asked := meta.FindStatusCondition(t.Status.Conditions, v1alpha1.ConditionCancelRequested)
	if t.Status.Phase == v1alpha1.TaskFinalizing { // its publication knows whether it can still be withdrawn
		return nil
	}
	if asked == nil || !meta.IsStatusConditionTrue(t.Status.Conditions, v1alpha1.ConditionCancelRequested) {
		return nil
	}
	state, over, err := halt(ctx, s.executor, t)
	if err != nil {
		return err
	}
	if !over {
		t.Status.Message = "cancellation was requested; the run is being stopped"
		return step.Wait{After: stopCheck, Reason: t.Status.Message}
	}
	o := outcome{phase: v1alpha1.TaskCancelled, reason: v1alpha1.ReasonCancelled, message: "the task was cancelled"}
	if asked.Message != "" && asked.Message != noReason {
		o.message += ": " + asked.Message
	}
	o.message = neverBegan(t, o.message)
	finished, err := hadFinished(ctx, t, state, s.children)
	if err != nil {
		return err
	}
	if finished { // before it was stopped
		o = succeeded(state)
	}
	if err := s.end(ctx, t, o); err != nil {
		return err
	}
	return step.ErrDone
}

// hadFinished reports whether nothing of the task was left to do when it was stopped; state is that of its last run. An
// autonomous task would have gone on with another iteration, a task with children that have not ended waits for them, and what a task
// changed in its repository would have been published.
func hadFinished(ctx context.Context, t *v1alpha1.Task, state executor.State, children func(context.Context, *v1alpha1.Task) ([]v1alpha1.Task, error)) (bool, error) {
	if !state.Succeeded() || t.Spec.Workspace.Writes() || iterates(t) || meta.IsStatusConditionTrue(t.Status.Conditions, v1alpha1.ConditionWaitingForChildren) {
		return false, nil
	}
	if !t.Status.HasChildren {
		return true, nil
	}
	list, err := children(ctx, t) // the run may have ended only just now, so that the condition is not yet written
	if err != nil {
		return false, err
	}
	return len(alive(list)) == 0, nil
}
