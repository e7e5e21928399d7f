// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package cancellation

import (
	"context"
	"fmt"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/platform-ai/platform/pkg/apis/core/v1alpha1"
	"github.com/platform-ai/platform/pkg/server/registry/core/task/refusal"
	"github.com/platform-ai/platform/pkg/server/registry/core/task/stored"
	"github.com/platform-ai/platform/pkg/server/registry/resource"
	"github.com/platform-ai/platform/pkg/storage/engine"
	"github.com/platform-ai/platform/pkg/storage/object"
)

// Detach serves POST of detach: it separates a delegated task from its parent, in one commit with its event: the parent does not wait for it any
// more, and a cancellation or deletion of the parent leaves it alone.
func (r Cancellations) Detach(ctx context.Context, p stored.Parent, obj runtime.Object) (runtime.Object, error) {
	d, ok := obj.(*v1alpha1.TaskDetachment)
	if !ok {
		return nil, apierrors.NewBadRequest(fmt.Sprintf("the body must be a TaskDetachment, not %T", obj))
	}
	message, err := messageOf(d.Reason, "the task goes on without its parent")
	if err != nil {
		return nil, err
	}
	if p.Object.Status.Delegation == nil {
		return nil, apierrors.NewBadRequest("the task was not delegated, so it cannot be detached")
	}
	if p.DryRun {
		t := p.Object.DeepCopy()
		separate(t)
		return t, nil
	}
	root, _ := stored.Root(p.Object)
	unlock, err := r.Trees.Cancelling(ctx, root)
	if err != nil {
		return nil, err
	}
	defer unlock()
	for {
		var now *v1alpha1.Task
		part, err := r.Tasks.Stage(ctx, p.Object.Name, func(t *v1alpha1.Task) error {
			if t.UID != p.Object.UID {
				return refusal.Deleted(p.Object)
			}
			if t.Status.Phase.Terminal() {
				return refusal.Ended(t)
			}
			separate(t)
			now = t.DeepCopy()
			return nil
		})
		if err != nil {
			return nil, resource.StatusError(v1alpha1.Resource("tasks"), p.Object.Name, err)
		}
		if part == nil { // it is detached already
			return p.Reload(ctx)
		}
		e, err := r.Log.Stage(stored.Stream(now), marking(now, v1alpha1.ReasonDetached, "server/detached", "the task was detached from its parent", message))
		if err != nil {
			return nil, err
		}
		err = r.Log.Commit(engine.Upkeep, part, e)
		if err == nil {
			return p.Reload(ctx)
		}
		if !object.IsConflict(err) || ctx.Err() != nil {
			return nil, resource.StatusError(v1alpha1.Resource("tasks"), p.Object.Name, err)
		}
	}
}

// separate cuts the links to the parent: the record, and the owner reference with which the parent's deletion would
// delete the task.
func separate(t *v1alpha1.Task) {
	t.Status.Delegation.Detached = true
	t.OwnerReferences = slices.DeleteFunc(t.OwnerReferences, func(o metav1.OwnerReference) bool { return o.UID == t.Status.Delegation.ParentUID })
}
