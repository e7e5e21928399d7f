// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package task

import (
	"context"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/platform-ai/platform/pkg/apis/core/v1alpha1"
	"github.com/platform-ai/platform/pkg/approval"
	"github.com/platform-ai/platform/pkg/server/registry/core/task/refusal"
)

// Get reads a task of the request's namespace from the store. Errors are API errors.
func (r *Resource) Get(ctx context.Context, name string) (*v1alpha1.Task, error) {
	return r.tasks.Get(ctx, name)
}

// Append appends events to the stream of a stored task, in the same way as a create of its subresource events. Errors
// are API errors.
func (r *Resource) Append(ctx context.Context, task string, events ...*v1alpha1.ExecutionEvent) ([]*v1alpha1.ExecutionEvent, error) {
	return r.events.Append(ctx, task, events...)
}

// Decide appends an event that ends an approval of the task. The caller must already have been
// authorized to decide. If the approval has ended before, nothing is appended and there is no
// error. Errors are API errors.
func (r *Resource) Decide(ctx context.Context, t *v1alpha1.Task, e *v1alpha1.ExecutionEvent) error {
	if approval.StateOf(e.Type) == "" {
		return apierrors.NewInternalError(fmt.Errorf("%s decides nothing", e.Type))
	}
	return r.events.Report(ctx, t, e)
}

// Judged appends the event that reports what policies decided about a call of a tool.
func (r *Resource) Judged(ctx context.Context, t *v1alpha1.Task, e *v1alpha1.ExecutionEvent) error {
	return r.events.Report(ctx, t, e)
}

// Annotate changes annotations of the task, provided that it was not replaced by another of that
// name. It does not change the status. change may be called several times.
func (r *Resource) Annotate(ctx context.Context, t *v1alpha1.Task, change func(annotations map[string]string)) error {
	return r.tasks.UpdateAsCaller(ctx, t.Name, func(now *v1alpha1.Task) error {
		if now.UID != t.UID {
			return refusal.Deleted(t)
		}
		if now.Annotations == nil {
			now.Annotations = map[string]string{}
		}
		change(now.Annotations)
		return nil
	})
}

// KeepCall keeps a call that a worker of the task asks about; see content.Contents.
func (r *Resource) KeepCall(ctx context.Context, t *v1alpha1.Task, id string, c *v1alpha1.TaskCall) error {
	return r.content.KeepCall(ctx, t, id, c)
}

// Uncovered returns why the transaction of a task does not cover a tool; empty if it does.
func (r *Resource) Uncovered(ctx context.Context, t *v1alpha1.Task, tool string) string {
	if r.checkTool == nil {
		return ""
	}
	return r.checkTool(ctx, t, tool)
}

// Verified reports whether the requester of a task is the one that this server recorded.
func (r *Resource) Verified(t *v1alpha1.Task) bool { return r.requesters.Seal.Verified(t) }
