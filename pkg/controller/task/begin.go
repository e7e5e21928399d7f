// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package task

import (
	"context"
	"fmt"

	"k8s.io/apimachinery/pkg/api/meta"

	"github.com/platform-ai/platform/pkg/apis/core/v1alpha1"
)

// begin looks at a new task first, and makes one that is cancelled already Pending. Any other is left to admit or schedule: its
// first event is then stored in the commit with which its attempt, or its schedule, begins.
type begin struct {
	append appendFunc
}

func (s begin) do(ctx context.Context, t *v1alpha1.Task) error {
	if t.Status.Phase == "" {
		if meta.IsStatusConditionTrue(t.Status.Conditions, v1alpha1.ConditionCancelRequested) {
			if err := s.append(ctx, t, createdEvent(t)); err != nil {
				return err
			}
			t.Status.Phase = v1alpha1.TaskPending
		}
		waitsNoMore(t, "a controller has begun with the task")
	}
	t.Status.ObservedGeneration = t.Generation
	return nil
}

// createdEvent returns the first event of a task. It may be appended again.
func createdEvent(t *v1alpha1.Task) v1alpha1.ExecutionEvent {
	return event(t, v1alpha1.EventTaskCreated, keyCreated, fmt.Sprintf("task %s was created", t.Name), map[string]any{"type": string(t.Spec.Type)})
}

// first returns the events of a task, after its first one if that may not be stored yet: until an attempt has been
// recorded as started.
func first(t *v1alpha1.Task, events ...v1alpha1.ExecutionEvent) []v1alpha1.ExecutionEvent {
	if t.Status.Attempts > 1 || meta.IsStatusConditionTrue(t.Status.Conditions, v1alpha1.ConditionJobCreated) {
		return events
	}
	return append([]v1alpha1.ExecutionEvent{createdEvent(t)}, events...)
}
