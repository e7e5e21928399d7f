// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package task

import (
	"context"
	"errors"
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/klog/v2"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	"github.com/platform-ai/platform/pkg/apis/core/v1alpha1"
	"github.com/platform-ai/platform/pkg/controller/executor"
	"github.com/platform-ai/platform/pkg/controller/step"
)

// stopCheck is how often a run that was told to stop is looked at, should the
// news of its end not come.
const stopCheck = 5 * time.Second

// halt stops the current run of a task. A nil error with over tells that there
// is none any more; state is its last state, if it had one.
func halt(ctx context.Context, e executor.Executor, t *v1alpha1.Task) (state executor.State, over bool, err error) {
	if t.Status.Attempts == 0 {
		return state, true, nil
	}
	state, err = e.State(ctx, runRef(t))
	if errors.Is(err, executor.ErrNotFound) {
		return state, true, nil
	}
	if err != nil {
		return state, false, fmt.Errorf("run: %w", err)
	}
	if state.Phase != executor.Running {
		return state, true, nil
	}
	if err := e.Stop(ctx, runRef(t)); err != nil {
		return state, false, fmt.Errorf("stop run: %w", err)
	}
	return state, false, nil
}

// deletion ends a task that is being deleted, and lets it go when nothing of it runs or lies about.
type deletion struct {
	executor      executor.Executor
	end           endFunc
	dropFinalizer func(context.Context, *v1alpha1.Task) error
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
		if state.Succeeded() {
			o = succeeded(state)
		}
		if err := s.end(ctx, t, o); err != nil {
			return err
		}
		return step.ErrDone // the next reconcile goes on, when the phase is stored
	}
	if err := s.executor.Remove(ctx, t.UID); err != nil {
		return fmt.Errorf("clean up: %w", err)
	}
	if err := s.dropFinalizer(ctx, t); err != nil {
		return err
	}
	return step.ErrDone
}

// finalizer keeps a task until deletion has cleaned up after it.
type finalizer struct {
	add func(context.Context, *v1alpha1.Task) error
}

func (s finalizer) do(ctx context.Context, t *v1alpha1.Task) error {
	if t.Status.Phase.Terminal() || controllerutil.ContainsFinalizer(t, v1alpha1.FinalizerCleanup) {
		return nil
	}
	if err := s.add(ctx, t); err != nil {
		return err
	}
	return step.ErrDone // the patch wakes the task again
}

// begin makes a new task Pending.
type begin struct {
	append appendFunc
}

func (s begin) do(ctx context.Context, t *v1alpha1.Task) error {
	if t.Status.Phase == "" {
		created := event(t, v1alpha1.EventTaskCreated, keyCreated, messagef("task %s was created", t.Name), map[string]any{"type": string(t.Spec.Type)})
		if err := s.append(ctx, t, created); err != nil {
			return err
		}
		t.Status.Phase = v1alpha1.TaskPending
		waitsNoMore(t, "a controller has begun with the task")
	}
	t.Status.ObservedGeneration = t.Generation
	return nil
}

// completed writes a missing terminal event of a finished task again, and
// delivers the completion callback.
type completed struct {
	end  endFunc
	post func(ctx context.Context, target string, body webhookBody) error
}

func (s completed) do(ctx context.Context, t *v1alpha1.Task) error {
	if !t.Status.Phase.Terminal() {
		return nil
	}
	// The condition is written with the phase, after the event. A phase that came otherwise has neither.
	if !meta.IsStatusConditionTrue(t.Status.Conditions, v1alpha1.ConditionComplete) {
		if err := s.end(ctx, t, outcome{phase: t.Status.Phase, message: t.Status.Message}); err != nil {
			return err
		}
		return step.ErrDone
	}
	addEnd(&t.Status)
	if t.Spec.WebhookURL == "" || t.Status.WebhookDelivered {
		return step.ErrDone
	}
	body := webhookBody{
		TaskName: t.Name, TaskNamespace: t.Namespace, Phase: string(t.Status.Phase), Message: t.Status.Message,
		StartTime: t.Status.StartTime, CompletionTime: t.Status.CompletionTime, Attempts: t.Status.Attempts,
	}
	body.ResultRef.Available = t.Status.ResultRef != nil && t.Status.ResultRef.Available
	if t.Spec.Type == v1alpha1.TaskTypeAgent {
		body.RuntimeType = "agent"
	}
	if err := s.post(ctx, t.Spec.WebhookURL, body); err != nil {
		klog.FromContext(ctx).Info("Completion callback was not delivered", "cause", err.Error())
		return step.Wait{After: webhookRetry, Reason: "the completion callback was not delivered"}
	}
	t.Status.WebhookDelivered = true
	return step.ErrDone
}

// noReason is what tasks/cancel writes for a caller who gave none.
const noReason = "cancellation was requested"

// cancel ends a task whose cancellation was requested.
type cancel struct {
	executor executor.Executor
	end      endFunc
}

func (s cancel) do(ctx context.Context, t *v1alpha1.Task) error {
	asked := meta.FindStatusCondition(t.Status.Conditions, v1alpha1.ConditionCancelRequested)
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
	if state.Succeeded() { // it was faster
		o = succeeded(state)
	}
	if err := s.end(ctx, t, o); err != nil {
		return err
	}
	return step.ErrDone
}
