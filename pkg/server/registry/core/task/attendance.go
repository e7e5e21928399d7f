// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package task

import (
	"context"
	"fmt"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/internalversion"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apiserver/pkg/endpoints/request"
	"k8s.io/apiserver/pkg/registry/rest"
	"k8s.io/client-go/util/workqueue"
	"k8s.io/klog/v2"
	"k8s.io/utils/clock"

	"github.com/platform-ai/platform/pkg/apis/core/v1alpha1"
)

// unattended is how long a new task waits for a controller, while no task of its
// namespace gets one, before the server says so. A controller that is started
// anew, or replaced by another, is there before.
const unattended = 30 * time.Second

// attendance notices tasks that no controller looks at: none runs, or none that
// watches their namespace. Of all programs the server alone can know: it sees
// tasks in every namespace, and who begins with them.
type attendance struct {
	clock clock.WithTicker
	// due has each new task when it should have been begun with.
	due workqueue.TypedDelayingInterface[types.NamespacedName]

	// mu guards what follows.
	mu sync.Mutex
	// begun is when a controller last began with a task, by namespace.
	begun map[string]time.Time
	// alone are the namespaces where a task waits in vain.
	alone map[string]bool
}

func newAttendance(c clock.WithTicker) *attendance {
	queue := workqueue.NewTypedDelayingQueueWithConfig(workqueue.TypedDelayingQueueConfig[types.NamespacedName]{Clock: c})
	return &attendance{clock: c, due: queue, begun: map[string]time.Time{}, alone: map[string]bool{}}
}

// created is told of each new task.
func (a *attendance) created(t *v1alpha1.Task) {
	a.due.AddAfter(types.NamespacedName{Namespace: t.Namespace, Name: t.Name}, unattended)
}

// began is told when a controller begins with a task.
func (a *attendance) began(namespace string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.begun[namespace] = a.clock.Now()
	delete(a.alone, namespace)
}

// left is how long the task may wait yet.
func (a *attendance) left(t *v1alpha1.Task) time.Duration {
	a.mu.Lock()
	defer a.mu.Unlock()
	since := t.CreationTimestamp.Time
	if begun := a.begun[t.Namespace]; begun.After(since) {
		since = begun
	}
	left := since.Add(unattended).Sub(a.clock.Now())
	if left <= 0 {
		a.alone[t.Namespace] = true
	}
	return left
}

// warning is for who creates a task in a namespace where others wait in vain.
func (a *attendance) warning(namespace string) []string {
	a.mu.Lock()
	defer a.mu.Unlock()
	if !a.alone[namespace] {
		return nil
	}
	return []string{"the task will wait: " + noController(namespace)}
}

func noController(namespace string) string {
	return fmt.Sprintf("no controller looks after tasks of namespace %s; it is down, or --watch-namespace names others", namespace)
}

// attend says of each task that waits for a controller in vain that it does, until ctx ends.
func (r *Resource) attend(ctx context.Context, status rest.Updater) {
	defer context.AfterFunc(ctx, r.attendance.due.ShutDown)()
	log := klog.FromContext(ctx)
	if err := r.unbegun(ctx); err != nil && ctx.Err() == nil {
		log.Error(err, "Tasks that nobody has begun with are not looked at")
	}
	for {
		key, down := r.attendance.due.Get()
		if down {
			return
		}
		if err := r.lookAfter(ctx, status, key); err != nil && ctx.Err() == nil {
			log.Error(err, "Cannot say that a task waits for a controller", "task", key)
			r.attendance.due.AddAfter(key, unattended)
		}
		r.attendance.due.Done(key)
	}
}

// unbegun notes the tasks that there are at the start.
func (r *Resource) unbegun(ctx context.Context) error {
	return r.eachPage(ctx, &internalversion.ListOptions{}, func(t *v1alpha1.Task) {
		if t.Status.Phase == "" {
			r.attendance.created(t)
		}
	})
}

func (r *Resource) lookAfter(ctx context.Context, status rest.Updater, key types.NamespacedName) error {
	ctx = request.WithNamespace(ctx, key.Namespace)
	t, err := r.get(ctx, key.Name)
	if apierrors.IsNotFound(err) {
		return nil
	}
	if err != nil {
		return err
	}
	if !waitsForController(t) {
		return nil
	}
	if left := r.attendance.left(t); left > 0 {
		r.attendance.due.AddAfter(key, left)
		return nil
	}
	info := rest.DefaultUpdatedObjectInfo(nil, func(_ context.Context, _, old runtime.Object) (runtime.Object, error) {
		now, ok := old.DeepCopyObject().(*v1alpha1.Task)
		if !ok || now.UID != t.UID || !waitsForController(now) {
			return old, nil
		}
		now.Status.Message = noController(key.Namespace)
		meta.SetStatusCondition(&now.Status.Conditions, metav1.Condition{
			Type: v1alpha1.ConditionWaitingToStart, Status: metav1.ConditionTrue, Reason: v1alpha1.ReasonNoController,
			Message: now.Status.Message, ObservedGeneration: now.Generation, LastTransitionTime: metav1.NewTime(r.clock.Now()),
		})
		return now, nil
	})
	_, _, err = status.Update(ctx, key.Name, info, rest.ValidateAllObjectFunc, rest.ValidateAllObjectUpdateFunc, false, &metav1.UpdateOptions{})
	if apierrors.IsNotFound(err) {
		return nil
	}
	return err
}

// waitsForController reports whether nobody has begun with the task, nor said so.
func waitsForController(t *v1alpha1.Task) bool {
	return t.Status.Phase == "" && t.DeletionTimestamp == nil && !meta.IsStatusConditionTrue(t.Status.Conditions, v1alpha1.ConditionWaitingToStart)
}
