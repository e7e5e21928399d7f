// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package task

import (
	"context"
	"fmt"
	"net/http"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apiserver/pkg/registry/rest"

	"github.com/platform-ai/platform/pkg/apis/core/v1alpha1"
	"github.com/platform-ai/platform/pkg/approval"
	"github.com/platform-ai/platform/pkg/runspec"
	"github.com/platform-ai/platform/pkg/server/registry/core/task/agentrequest"
	"github.com/platform-ai/platform/pkg/server/registry/core/task/refusal"
	"github.com/platform-ai/platform/pkg/server/registry/core/task/stored"
)

// This file has what other resources use of tasks.

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

// Asking returns the task whose agent asks a model; see agentrequest.Requests.
func (r *Resource) Asking(ctx context.Context, name string) (*agentrequest.Run, error) {
	return r.agentRequests.Of(ctx, name)
}

// noModels answers requests below the subresource proxy that are none of the vendors' APIs. Those are answered before they reach the
// resources, because an answer of a model has no deadline.
func noModels(context.Context, stored.Parent, rest.Responder) (http.Handler, error) {
	return nil, apierrors.NewNotFound(v1alpha1.Resource("tasks/"+runspec.ModelsSubresource), "the path: below it are openai/v1 and anthropic/v1")
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

// Each calls f with each task of the request's namespace, in the order of names, as of one revision, which it returns; 0 is
// the newest. It is for the server itself: no guard is asked. The tasks are shared, so f must not change them.
func (r *Resource) Each(ctx context.Context, revision uint64, f func(*v1alpha1.Task) error) (uint64, error) {
	return r.tasks.Each(ctx, revision, f)
}

// Usage returns what a task has used as of a revision, which is that of the task or a later one; nil if nothing is known.
func (r *Resource) Usage(ctx context.Context, t *v1alpha1.Task, revision uint64) *v1alpha1.TaskUsage {
	return r.meters.UsageAt(ctx, t, revision)
}

// IsLeftover is that of the trees.
func (r *Resource) IsLeftover(uid types.UID) bool { return r.trees.IsLeftover(uid) }

// Below returns the names of the tasks that exist below a root task, by their UIDs.
func (r *Resource) Below(root types.UID) map[types.UID]string { return r.trees.Below(root, root) }

// RootUID returns the UID of the root of the tree of a delegated task; empty if there is no such task.
func (r *Resource) RootUID(uid types.UID) types.UID { return r.trees.Root(uid) }
