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
	"github.com/platform-ai/platform/pkg/server/registry/core/task/stored"
)

// admitApprovals checks approval events and completes them for storage. all are the events to
// store: after an event that reports an approved call it inserts the outcome of that call. own[i]
// reports whether all[i] came from the caller; nil means that every event did.
func (r appends) admitApprovals(t *v1alpha1.Task, events []*v1alpha1.ExecutionEvent) (all []*v1alpha1.ExecutionEvent, own []bool, err error) {
	root, _ := stored.Root(t)
	owner := approval.Owner{Namespace: t.Namespace, Task: t.Name, UID: t.UID, RootUID: root, RequestedBy: t.Annotations[v1alpha1.AnnotationRequestedBy]}
	added := false
	for i, e := range events {
		outcome, err := approval.Admit(e, owner, r.clock.Now())
		if err != nil {
			err = apierrors.NewBadRequest(err.Error())
			if len(events) > 1 {
				err = refusal.At(fmt.Sprintf("items[%d]: ", i), err)
			}
			return nil, nil, err
		}
		all, own = append(all, e), append(own, true)
		if outcome != nil {
			all, own = append(all, outcome), append(own, false)
			added = true
		}
	}
	if !added {
		return events, nil, nil
	}
	return all, own, nil
}

// ownOnly removes the events that the server added.
func ownOnly(events []*v1alpha1.ExecutionEvent, own []bool) []*v1alpha1.ExecutionEvent {
	if own == nil {
		return events
	}
	var out []*v1alpha1.ExecutionEvent
	for i, e := range events {
		if own[i] {
			out = append(out, e)
		}
	}
	return out
}

// Get reads a task of the request's namespace from the store. Errors are API errors.
func (r *Resource) Get(ctx context.Context, name string) (*v1alpha1.Task, error) {
	return r.tasks.Get(ctx, name)
}

// Decide appends an event that ends an approval of the task. The caller must already have been
// authorized to decide. If the approval has ended before, nothing is appended and there is no
// error. Errors are API errors.
func (r *Resource) Decide(ctx context.Context, t *v1alpha1.Task, e *v1alpha1.ExecutionEvent) error {
	if approval.StateOf(e.Type) == "" {
		return apierrors.NewInternalError(fmt.Errorf("%s decides nothing", e.Type))
	}
	return appends{r}.report(ctx, t, e)
}

// Judged appends the event that reports what policies decided about a call of a tool.
func (r *Resource) Judged(ctx context.Context, t *v1alpha1.Task, e *v1alpha1.ExecutionEvent) error {
	return appends{r}.report(ctx, t, e)
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
