// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package task

import (
	"context"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/internalversion"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apiserver/pkg/endpoints/request"
	"k8s.io/apiserver/pkg/storage"

	"github.com/platform-ai/platform/pkg/apis/core/v1alpha1"
	"github.com/platform-ai/platform/pkg/server/registry/resource"
	"github.com/platform-ai/platform/pkg/storage/engine"
	"github.com/platform-ai/platform/pkg/storage/object"
)

// beforeDelete cancels what a task has delegated before the task is deleted, and the task itself, so that it delegates
// nothing more.
func (r kin) beforeDelete(ctx context.Context, t *v1alpha1.Task) error {
	if !t.Status.HasChildren {
		return nil
	}
	err := r.cancelTree(ctx, t, !t.Status.Phase.Terminal(), "the task above was deleted")
	if apierrors.IsConflict(err) { // it ended meanwhile
		err = r.cancelTree(ctx, t, false, "the task above was deleted")
	}
	return err
}

// orphan removes, in one commit, the owner references to a task that is being deleted, so that the tasks and agents that
// it owns stay. It does so where there is no garbage collector.
func (r kin) orphan(ctx context.Context, t *v1alpha1.Task) error {
	ctx = request.WithNamespace(ctx, t.Namespace)
	if r.orphaned != nil {
		if err := r.orphaned(ctx, t); err != nil {
			return err
		}
	}
	tasks, err := r.storage()
	if err != nil {
		return err
	}
	refersTo := func(o metav1.OwnerReference) bool { return o.UID == t.UID }
	for {
		var parts []engine.Part
		selector := labels.SelectorFromSet(labels.Set{v1alpha1.LabelParentTask: v1alpha1.LabelValue(t.Name)})
		var owned []string
		err := eachPage(request.WithUser(ctx, nil), tasks, &internalversion.ListOptions{LabelSelector: selector}, func(c *v1alpha1.Task) {
			if slices.ContainsFunc(c.OwnerReferences, refersTo) {
				owned = append(owned, c.Name)
			}
		})
		if err != nil {
			return err
		}
		for _, name := range owned {
			part, err := tasks.Stage(ctx, name, func(c *v1alpha1.Task) error {
				c.OwnerReferences = slices.DeleteFunc(c.OwnerReferences, refersTo)
				return nil
			})
			switch {
			case storage.IsNotFound(err):
			case err != nil:
				return resource.StatusError(v1alpha1.Resource("tasks"), name, err)
			case part != nil:
				parts = append(parts, part)
			}
		}
		if len(parts) == 0 {
			return nil
		}
		err = r.log.Commit(engine.Upkeep, parts...)
		switch {
		case err == nil:
			return nil
		case !object.IsConflict(err) || ctx.Err() != nil:
			return resource.StatusError(v1alpha1.Resource("tasks"), t.Name, err)
		}
	}
}
