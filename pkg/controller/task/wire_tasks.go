// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package task

import (
	"context"
	"errors"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	"github.com/platform-ai/platform/pkg/apis/core/v1alpha1"
)

// taskAPI reads tasks and changes their metadata.
type taskAPI struct{ *wire }

// ownChange is the version of a task before and after a change.
type ownChange struct{ from, to string }

// maxOwnChanges bounds how many changes are remembered. A change matters until the end of its reconcile.
const maxOwnChanges = 1024

// fresh returns a conflict if the cache lags behind the server. It is called before anything
// that cannot be undone.
func (w taskAPI) fresh(ctx context.Context, t *v1alpha1.Task) error {
	var now v1alpha1.Task
	if err := w.live.Get(ctx, client.ObjectKeyFromObject(t), &now); err != nil {
		return fmt.Errorf("read the task: %w", err)
	}
	if now.UID != t.UID || now.ResourceVersion != t.ResourceVersion {
		return apierrors.NewConflict(v1alpha1.Resource("tasks"), t.Name, errors.New("the task has changed"))
	}
	return nil
}

// changeMeta patches metadata only; the status in memory is unchanged.
func (w taskAPI) changeMeta(ctx context.Context, t *v1alpha1.Task, change func(client.Object) bool) error {
	after := t.DeepCopy()
	if !change(after) {
		return nil
	}
	err := w.Patch(ctx, after, client.MergeFromWithOptions(t, client.MergeFromWithOptimisticLock{}))
	if err != nil {
		return fmt.Errorf("finalizer: %w", err)
	}
	w.own.Add(t.UID, ownChange{from: t.ResourceVersion, to: after.ResourceVersion})
	t.ResourceVersion = after.ResourceVersion
	return nil
}

func (w taskAPI) addFinalizer(ctx context.Context, t *v1alpha1.Task) error {
	return w.changeMeta(ctx, t, func(o client.Object) bool { return controllerutil.AddFinalizer(o, v1alpha1.FinalizerCleanup) })
}

func (w taskAPI) dropFinalizer(ctx context.Context, t *v1alpha1.Task) error {
	err := w.changeMeta(ctx, t, func(o client.Object) bool { return controllerutil.RemoveFinalizer(o, v1alpha1.FinalizerCleanup) })
	return client.IgnoreNotFound(err)
}

// shows reports whether the cache holds the task in this version, or in the one that this process itself just changed
// into it.
func (w taskAPI) shows(ctx context.Context, t *v1alpha1.Task) (bool, error) {
	var now v1alpha1.Task
	err := w.Get(ctx, client.ObjectKeyFromObject(t), &now, client.UnsafeDisableDeepCopy)
	if apierrors.IsNotFound(err) {
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("read the task: %w", err)
	}
	if now.UID != t.UID {
		return false, nil
	}
	if now.ResourceVersion == t.ResourceVersion {
		return true, nil
	}
	change, ok := w.own.Get(t.UID)
	return ok && change == ownChange{from: now.ResourceVersion, to: t.ResourceVersion}, nil
}

// planOf reads the plan of a task from the server; nil if there is none.
func (w taskAPI) planOf(ctx context.Context, t *v1alpha1.Task) (*v1alpha1.TaskPlan, error) {
	var p v1alpha1.TaskPlan
	err := w.SubResource("plan").Get(ctx, t, &p)
	if apierrors.IsNotFound(err) {
		return nil, nil //nolint:nilnil // no plan
	}
	if err != nil {
		return nil, err
	}
	return &p, nil
}
