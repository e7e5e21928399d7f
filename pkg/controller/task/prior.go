// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package task

import (
	"context"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/workqueue"
	"k8s.io/klog/v2"
	"sigs.k8s.io/controller-runtime/pkg/client"
	ctrlevent "sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/platform-ai/platform/pkg/apis/core/v1alpha1"
	"github.com/platform-ai/platform/pkg/controller/step"
	"github.com/platform-ai/platform/pkg/plan"
	"github.com/platform-ai/platform/pkg/plan/refusal"
	"github.com/platform-ai/platform/pkg/workspace"
)

// prior makes a task wait for the one that it continues, and records how it begins. A task continues only one that was created before it,
// so no two wait for each other, and the cache has that one.
type prior struct {
	cached client.Reader
	// delta returns what a run left; false if nothing.
	delta func(ctx context.Context, t *v1alpha1.Task) ([]byte, bool, error)
}

// begin records the beginning of the first attempt, with which later ones begin, too. It returns a queued error until the other task has
// ended.
func (s prior) begin(ctx context.Context, t *v1alpha1.Task) error {
	ref, d := t.Spec.PriorTaskRef, t.Status.Delivery
	if ref == nil || d != nil && d.StartingSHA != "" {
		return nil
	}
	refuse := func(format string, args ...any) error {
		return refusal.New(v1alpha1.ReasonPriorTaskUnusable, "spec.priorTaskRef: "+format, args...)
	}
	if t.Status.PriorTaskUID == "" {
		return refuse("the server has not recorded which task %q is; create the task again", ref.Name)
	}
	found := &v1alpha1.Task{}
	err := s.cached.Get(ctx, types.NamespacedName{Namespace: t.Namespace, Name: ref.Name}, found)
	switch {
	case apierrors.IsNotFound(err) || err == nil && found.UID != t.Status.PriorTaskUID:
		return refuse("task %q is gone, with what it changed", ref.Name)
	case err != nil:
		return fmt.Errorf("prior task: %w", err)
	case !found.Status.Phase.Terminal():
		return queued{v1alpha1.ReasonPriorTaskActive, step.Wait{Reason: fmt.Sprintf("waits for task %s, with whose changes it begins", found.Name)}}
	}
	begins, refused := plan.BeginningOf(t, found)
	if refused != nil {
		return refused
	}
	t.Status.PriorChangesDigest = ""
	if begins.Apply {
		if t.Status.PriorChangesDigest, err = s.digest(ctx, found); err != nil {
			return err
		}
		if t.Status.PriorChangesDigest == "" {
			return refuse("task %q ended without an account of what it changed", ref.Name)
		}
	}
	t.Status.Delivery = &v1alpha1.TaskDelivery{State: v1alpha1.DeliveryNotRequested, StartingSHA: begins.Commit}
	return nil
}

// digest returns the digest of what a task changed; empty if it left no account of that. A publication has recorded it already.
func (s prior) digest(ctx context.Context, t *v1alpha1.Task) (string, error) {
	if d := t.Status.Delivery; d != nil && d.ArtifactDigest != "" {
		return d.ArtifactDigest, nil
	}
	changes, ok, err := s.delta(ctx, t)
	if err != nil || !ok {
		return "", err
	}
	return workspace.Digest(changes), nil
}

// priorIndex finds the tasks that wait for the end of another one, by its UID.
const priorIndex = "prior"

func priorOf(o client.Object) []string {
	t, ok := o.(*v1alpha1.Task)
	if !ok || t.Status.PriorTaskUID == "" || t.Status.Attempts > 0 || t.Status.Phase.Terminal() {
		return nil
	}
	return []string{string(t.Status.PriorTaskUID)}
}

// wakeNext wakes the tasks that wait for the end of a task.
func wakeNext(c client.Reader) handler.EventHandler {
	type queue = workqueue.TypedRateLimitingInterface[reconcile.Request]
	wake := func(ctx context.Context, q queue, o client.Object) {
		var waiting v1alpha1.TaskList
		err := c.List(ctx, &waiting, client.InNamespace(o.GetNamespace()), client.MatchingFields{priorIndex: string(o.GetUID())}, client.UnsafeDisableDeepCopy)
		if err != nil {
			klog.FromContext(ctx).Error(err, "Cannot list the tasks that continue a task", "task", klog.KObj(o))
			return
		}
		for i := range waiting.Items {
			q.Add(reconcile.Request{NamespacedName: client.ObjectKeyFromObject(&waiting.Items[i])})
		}
	}
	return handler.Funcs{
		UpdateFunc: func(ctx context.Context, e ctrlevent.UpdateEvent, q queue) {
			if isOver(e.ObjectNew) && !isOver(e.ObjectOld) {
				wake(ctx, q, e.ObjectNew)
			}
		},
		DeleteFunc: func(ctx context.Context, e ctrlevent.DeleteEvent, q queue) { wake(ctx, q, e.Object) },
	}
}

func isOver(o client.Object) bool {
	t, ok := o.(*v1alpha1.Task)
	return ok && t.Status.Phase.Terminal()
}
