// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package task

import (
	"context"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/platform-ai/platform/pkg/apis/core/v1alpha1"
	"github.com/platform-ai/platform/pkg/approval"
)

// approvalAPI lists approvals of tasks.
type approvalAPI struct{ *wire }

// unsettled returns the events that settle the pending approvals of an attempt that is over.
// They are part of the commit that ends the attempt.
func (w approvalAPI) unsettled(ctx context.Context, t *v1alpha1.Task, why string) ([]v1alpha1.ExecutionEvent, error) {
	var list v1alpha1.ApprovalList
	err := w.live.List(ctx, &list, client.InNamespace(t.Namespace), client.MatchingFields{"spec.taskName": t.Name})
	if err != nil {
		return nil, fmt.Errorf("approvals: %w", err)
	}
	return approval.End(list.Items, t.UID, why), nil
}

// pendingApprovals lists the pending approvals of a task that the cache has.
func (w approvalAPI) pendingApprovals(ctx context.Context, t *v1alpha1.Task) ([]v1alpha1.Approval, error) {
	var list v1alpha1.ApprovalList
	if err := w.List(ctx, &list, client.InNamespace(t.Namespace), client.MatchingFields{approvalTask: string(t.UID)}); err != nil {
		return nil, fmt.Errorf("approvals: %w", err)
	}
	return list.Items, nil
}

// tool reads the Tool of an approval as it is stored; nil if it is gone. The cache may be older than what the approval is bound
// to, so it is only believed if it has the same.
func (w approvalAPI) tool(ctx context.Context, a *v1alpha1.Approval) (*v1alpha1.Tool, error) {
	key, _ := approval.ToolOf(a)
	now := &v1alpha1.Tool{}
	if err := w.Get(ctx, key, now); err == nil && approval.Void(a, now) == nil {
		return now, nil
	}
	switch err := w.live.Get(ctx, key, now); {
	case apierrors.IsNotFound(err):
		return nil, nil //nolint:nilnil // it is gone
	case err != nil:
		return nil, fmt.Errorf("tool %s: %w", key, err)
	}
	return now, nil
}
