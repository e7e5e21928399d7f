// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package task

import (
	"context"
	"errors"
	"fmt"
	"net/http"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	"github.com/platform-ai/platform/pkg/apis/core/v1alpha1"
	"github.com/platform-ai/platform/pkg/controller/executor"
	"github.com/platform-ai/platform/pkg/controller/step"
)

// deletion ends a task that is being deleted, deletes what it owns, and removes its finalizer when nothing of it runs and its
// files are removed.
type deletion struct {
	executor      executor.Executor
	end           endFunc
	dropFinalizer func(context.Context, *v1alpha1.Task) error
	// children returns the tasks that the task delegated, owned those that have an owner reference to it. remove deletes a
	// task.
	children, owned func(context.Context, *v1alpha1.Task) ([]v1alpha1.Task, error)
	remove          func(context.Context, *v1alpha1.Task) error
	// forget drops what is known of the task's publication.
	forget func(*v1alpha1.Task) error
}

// removeOwned deletes the tasks that the task owns, as the garbage collector of a cluster does, and returns how many of
// them still exist. A deletion that keeps them (propagationPolicy Orphan) removes their owner references: the standalone
// server before it stores the deletion, a cluster before it removes the finalizer for that.
func (s deletion) removeOwned(ctx context.Context, t *v1alpha1.Task) (left int, err error) {
	owner := t.Status.HasChildren || t.Spec.Schedule != "" || t.Status.LastScheduleTime != nil
	if !owner || controllerutil.ContainsFinalizer(t, metav1.FinalizerOrphanDependents) {
		return 0, nil
	}
	list, err := s.owned(ctx, t)
	if err != nil {
		return 0, err
	}
	for i := range list {
		if c := &list[i]; c.DeletionTimestamp.IsZero() {
			if err := s.remove(ctx, c); err != nil {
				return 0, err
			}
		}
	}
	return len(list), nil
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
		switch err := s.end(ctx, t, o); {
		case err == nil:
			return step.ErrDone // the next reconcile continues, when the phase is stored
		case !isFull(err):
			return err
		}
		// The server has no room for the end of the task, and deleting the task makes room.
	}
	left, err := s.removeOwned(ctx, t)
	if err != nil {
		return err
	}
	if left > 0 { // the removal of each of them wakes the task
		return step.Wait{Reason: fmt.Sprintf("%d tasks that belong to the task are being deleted", left)}
	}
	if err := s.forget(t); err != nil {
		return err
	}
	if err := s.executor.Remove(ctx, t.UID); err != nil {
		return fmt.Errorf("clean up: %w", err)
	}
	if err := s.dropFinalizer(ctx, t); err != nil {
		return err
	}
	return step.ErrDone
}

// isFull reports whether the server refused a write because its disk is full.
func isFull(err error) bool {
	status := apierrors.APIStatus(nil)
	return errors.As(err, &status) && status.Status().Code == http.StatusInsufficientStorage
}
