// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package task

import (
	"context"
	"fmt"

	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	"github.com/platform-ai/platform/pkg/apis/core/v1alpha1"
	"github.com/platform-ai/platform/pkg/controller/executor"
	"github.com/platform-ai/platform/pkg/controller/step"
)

// deletion ends a task that is being deleted, and removes its finalizer when nothing of it runs and its files are
// removed.
type deletion struct {
	executor      executor.Executor
	end           endFunc
	dropFinalizer func(context.Context, *v1alpha1.Task) error
	// children returns what the task delegated, and remove deletes a task.
	children func(context.Context, *v1alpha1.Task) ([]v1alpha1.Task, error)
	remove   func(context.Context, *v1alpha1.Task) error
}

// removeChildren deletes the tasks that belong to the task, as the garbage collector of a cluster does.
func (s deletion) removeChildren(ctx context.Context, t *v1alpha1.Task) error {
	list, err := s.children(ctx, t)
	if err != nil {
		return err
	}
	for i := range list {
		if c := &list[i]; belongs(c) && c.DeletionTimestamp.IsZero() {
			if err := s.remove(ctx, c); err != nil {
				return err
			}
		}
	}
	return nil
}

func (s deletion) do(ctx context.Context, t *v1alpha1.Task) error {
	if t.DeletionTimestamp.IsZero() {
		return nil
	}
	if !controllerutil.ContainsFinalizer(t, v1alpha1.FinalizerCleanup) {
		return step.ErrDone
	}
	state, over, err := halt(ctx, s.executor, t)
	if err != nil {
		return err
	}
	if !over {
		return step.Wait{After: stopCheck, Reason: "the run is being stopped"}
	}
	if !t.Status.Phase.Terminal() {
		o := outcome{phase: v1alpha1.TaskCancelled, reason: v1alpha1.ReasonDeleted, message: neverBegan(t, "the task was deleted")}
		finished, err := hadFinished(ctx, t, state, s.children)
		if err != nil {
			return err
		}
		if finished {
			o = succeeded(state)
		}
		if err := s.end(ctx, t, o); err != nil {
			return err
		}
		return step.ErrDone // the next reconcile continues, when the phase is stored
	}
	if t.Status.HasChildren {
		if err := s.removeChildren(ctx, t); err != nil {
			return err
		}
	}
	if err := s.executor.Remove(ctx, t.UID); err != nil {
		return fmt.Errorf("clean up: %w", err)
	}
	if err := s.dropFinalizer(ctx, t); err != nil {
		return err
	}
	return step.ErrDone
}
