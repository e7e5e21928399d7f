// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package task

import (
	"context"
	"encoding/json"

	"github.com/platform-ai/platform/pkg/apis/core/v1alpha1"
)

// origin keeps, in the status, the commit that the first attempt of a task with a workspace began with. Later attempts begin with it,
// too, wherever the branch is by then.
type origin struct {
	each func(ctx context.Context, t *v1alpha1.Task, typ v1alpha1.EventType, f func(*v1alpha1.ExecutionEvent)) error
}

// freeze records the commit that the task's worker has reported, if it has.
func (s origin) freeze(ctx context.Context, t *v1alpha1.Task) error {
	if t.Spec.Workspace == nil || t.Status.Attempts == 0 || t.Status.Delivery != nil && t.Status.Delivery.StartingSHA != "" {
		return nil
	}
	var commit string
	err := s.each(ctx, t, v1alpha1.EventWorkspacePreparationCompleted, func(e *v1alpha1.ExecutionEvent) {
		var content struct {
			Commit string `json:"commit"`
		}
		if commit == "" && e.Content != nil && json.Unmarshal(e.Content.Raw, &content) == nil && v1alpha1.IsLowerHex(content.Commit, 40) {
			commit = content.Commit
		}
	})
	if err == nil && commit != "" {
		t.Status.Delivery = &v1alpha1.TaskDelivery{State: v1alpha1.DeliveryNotRequested, StartingSHA: commit}
	}
	return err
}
