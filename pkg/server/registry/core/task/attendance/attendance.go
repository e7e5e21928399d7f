// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

// Package attendance notices tasks that no controller looks after, and says so in their status and to whoever creates the next one.
package attendance

import (
	"context"
	"fmt"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apiserver/pkg/endpoints/request"
	"k8s.io/client-go/util/workqueue"
	"k8s.io/klog/v2"
	"k8s.io/utils/clock"

	"github.com/platform-ai/platform/pkg/apis/core/v1alpha1"
	"github.com/platform-ai/platform/pkg/server/registry/core/task/stored"
)

// unattended is the time after which the server reports that no controller has picked up a new
// task, if none has picked up another task of the namespace meanwhile either. A controller that
// restarts, or is replaced by another, is ready before that.
const unattended = 30 * time.Second

// Attendance detects tasks that no controller looks after: either no controller runs, or none
// watches their namespace. Only the server can detect this, because it sees the tasks of every
// namespace and sees when a controller picks one up.
type Attendance struct {
	clock clock.WithTicker
	// due holds each new task until the time by which a controller should have picked it up.
	due workqueue.TypedDelayingInterface[newTask]

	// mu guards the fields below.
	mu sync.Mutex
	// waiting holds the tasks that are due and that nobody is known to have picked up. The others need not be read.
	waiting map[types.UID]struct{}
	// begun holds, by namespace, when a controller last picked up a task.
	begun map[string]time.Time
	// alone holds the namespaces where no controller picks up tasks.
	alone map[string]bool
}

// newTask is a task that a controller should pick up.
type newTask struct {
	types.NamespacedName
	uid types.UID
}

// New returns an attendance without tasks.
func New(c clock.WithTicker) *Attendance {
	queue := workqueue.NewTypedDelayingQueueWithConfig(workqueue.TypedDelayingQueueConfig[newTask]{Clock: c})
	return &Attendance{clock: c, due: queue, waiting: map[types.UID]struct{}{}, begun: map[string]time.Time{}, alone: map[string]bool{}}
}

// Created is called for each new task.
func (a *Attendance) Created(t *v1alpha1.Task) {
	a.mu.Lock()
	a.waiting[t.UID] = struct{}{}
	a.mu.Unlock()
	a.due.AddAfter(newTask{types.NamespacedName{Namespace: t.Namespace, Name: t.Name}, t.UID}, unattended)
}

// Changed is called for each task whose status was written.
func (a *Attendance) Changed(t *v1alpha1.Task) {
	if !waitsForController(t) {
		a.Settled(t.UID)
	}
}

// Settled is called when nothing more is to be found out about a task.
func (a *Attendance) Settled(uid types.UID) {
	a.mu.Lock()
	defer a.mu.Unlock()
	delete(a.waiting, uid)
}

// waits reports whether a task that is due may wait for a controller.
func (a *Attendance) waits(uid types.UID) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	_, ok := a.waiting[uid]
	return ok
}

// Began is called when a controller picks up a task.
func (a *Attendance) Began(namespace string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.begun[namespace] = a.clock.Now()
	delete(a.alone, namespace)
}

// progress returns how much longer the controller that last picked up a task of the namespace is trusted to get to the others.
func (a *Attendance) progress(namespace string) time.Duration {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.remaining(a.begun[namespace])
}

// remaining returns what is left of the time that a controller has since a time.
func (a *Attendance) remaining(since time.Time) time.Duration {
	return since.Add(unattended).Sub(a.clock.Now())
}

// left returns how much longer the task may wait before the server reports it.
func (a *Attendance) left(t *v1alpha1.Task) time.Duration {
	a.mu.Lock()
	defer a.mu.Unlock()
	left := max(a.remaining(t.CreationTimestamp.Time), a.remaining(a.begun[t.Namespace]))
	if left <= 0 {
		a.alone[t.Namespace] = true
	}
	return left
}

// Warning returns a warning for users who create a task in a namespace where no controller picks up
// tasks.
func (a *Attendance) Warning(namespace string) []string {
	a.mu.Lock()
	defer a.mu.Unlock()
	if !a.alone[namespace] {
		return nil
	}
	return []string{"the task will wait: " + noController(namespace)}
}

func noController(namespace string) string {
	return fmt.Sprintf("no controller handles tasks of namespace %s: it is down, or its --watch-namespace names other namespaces", namespace)
}

// Attend marks each task that no controller picks up in time, until ctx ends.
func (a *Attendance) Attend(ctx context.Context, tasks stored.Tasks) {
	defer context.AfterFunc(ctx, a.due.ShutDown)()
	log := klog.FromContext(ctx)
	for {
		key, down := a.due.Get()
		if down {
			return
		}
		if a.waits(key.uid) {
			again, err := a.lookAfter(ctx, tasks, key.NamespacedName)
			if err != nil && ctx.Err() == nil {
				log.Error(err, "Cannot record that a task waits for a controller", "task", key.NamespacedName)
				again = unattended
			}
			if again > 0 {
				a.due.AddAfter(key, again)
			} else {
				a.Settled(key.uid)
			}
		}
		a.due.Done(key)
	}
}

// lookAfter marks a task that no controller picked up. It returns when to look again; 0 means that this is not needed.
func (a *Attendance) lookAfter(ctx context.Context, tasks stored.Tasks, key types.NamespacedName) (again time.Duration, err error) {
	if again = a.progress(key.Namespace); again > 0 {
		return again, nil // of a long queue nothing is read as long as it moves
	}
	ctx = request.WithNamespace(ctx, key.Namespace)
	t, err := tasks.Get(ctx, key.Name)
	if apierrors.IsNotFound(err) {
		return 0, nil
	}
	if err != nil || !waitsForController(t) {
		return 0, err
	}
	if left := a.left(t); left > 0 {
		return left, nil
	}
	_, err = tasks.UpdateStored(ctx, key.Name, func(now *v1alpha1.Task) error {
		if now.UID != t.UID || !waitsForController(now) {
			return nil
		}
		now.Status.Message = noController(key.Namespace)
		meta.SetStatusCondition(&now.Status.Conditions, metav1.Condition{
			Type: v1alpha1.ConditionWaitingToStart, Status: metav1.ConditionTrue, Reason: v1alpha1.ReasonNoController,
			Message: now.Status.Message, ObservedGeneration: now.Generation, LastTransitionTime: metav1.NewTime(a.clock.Now()),
		})
		return nil
	})
	if apierrors.IsNotFound(err) {
		return 0, nil
	}
	return 0, err
}

// waitsForController reports whether no controller has picked up the task and its status does not
// yet report that.
func waitsForController(t *v1alpha1.Task) bool {
	return t.Status.Phase == "" && t.DeletionTimestamp == nil && !meta.IsStatusConditionTrue(t.Status.Conditions, v1alpha1.ConditionWaitingToStart)
}
