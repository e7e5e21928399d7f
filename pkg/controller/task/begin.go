// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package task

import (
	"context"

	"github.com/platform-ai/platform/pkg/apis/core/v1alpha1"
)

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
