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

// attendance detects tasks that no controller looks after: either no controller runs, or none
// watches their namespace. Only the server can detect this, because it sees the tasks of every
// namespace and sees when a controller picks one up.
type attendance struct {
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

func newAttendance(c clock.WithTicker) *attendance {
	queue := workqueue.NewTypedDelayingQueueWithConfig(workqueue.TypedDelayingQueueConfig[newTask]{Clock: c})
	return &attendance{clock: c, due: queue, waiting: map[types.UID]struct{}{}, begun: map[string]time.Time{}, alone: map[string]bool{}}
}

// created is called for each new task.
func (a *attendance) created(t *v1alpha1.Task) {
	a.mu.Lock()
	a.waiting[t.UID] = struct{}{}
	a.mu.Unlock()
	a.due.AddAfter(newTask{types.NamespacedName{Namespace: t.Namespace, Name: t.Name}, t.UID}, unattended)
}

// changed is called for each task whose status was written.
func (a *attendance) changed(t *v1alpha1.Task) {
	if !waitsForController(t) {
		a.settled(t.UID)
	}
}

// settled is called when nothing more is to be found out about a task.
func (a *attendance) settled(uid types.UID) {
	a.mu.Lock()
	defer a.mu.Unlock()
	delete(a.waiting, uid)
}

// waits reports whether a task that is due may wait for a controller.
func (a *attendance) waits(uid types.UID) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	_, ok := a.waiting[uid]
	return ok
}

// began is called when a controller picks up a task.
func (a *attendance) began(namespace string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.begun[namespace] = a.clock.Now()
	delete(a.alone, namespace)
}

// progress returns how much longer the controller that last picked up a task of the namespace is trusted to get to the others.
func (a *attendance) progress(namespace string) time.Duration {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.remaining(a.begun[namespace])
}

// remaining returns what is left of the time that a controller has since a time.
func (a *attendance) remaining(since time.Time) time.Duration {
	return since.Add(unattended).Sub(a.clock.Now())
}

// left returns how much longer the task may wait before the server reports it.
func (a *attendance) left(t *v1alpha1.Task) time.Duration {
	a.mu.Lock()
	defer a.mu.Unlock()
	left := max(a.remaining(t.CreationTimestamp.Time), a.remaining(a.begun[t.Namespace]))
	if left <= 0 {
		a.alone[t.Namespace] = true
	}
	return left
}

// warning returns a warning for users who create a task in a namespace where no controller picks up
// tasks.
func (a *attendance) warning(namespace string) []string {
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

// attendant looks after tasks that no controller picks up.
type attendant struct {
	tasks      stored.Tasks
	attendance *attendance
	trees      *trees
	runs       *runs
	clock      clock.PassiveClock
}

// attend marks each task that no controller picks up in time, until ctx ends.
func (r attendant) attend(ctx context.Context) {
	defer context.AfterFunc(ctx, r.attendance.due.ShutDown)()
	log := klog.FromContext(ctx)
	if err := r.unbegun(ctx); err != nil && ctx.Err() == nil {
		log.Error(err, "Cannot read the tasks that exist at the start")
	}
	for {
		key, down := r.attendance.due.Get()
		if down {
			return
		}
		if r.attendance.waits(key.uid) {
			again, err := r.lookAfter(ctx, key.NamespacedName)
			if err != nil && ctx.Err() == nil {
				log.Error(err, "Cannot record that a task waits for a controller", "task", key.NamespacedName)
				again = unattended
			}
			if again > 0 {
				r.attendance.due.AddAfter(key, again)
			} else {
				r.attendance.settled(key.uid)
			}
		}
		r.attendance.due.Done(key)
	}
}

// unbegun registers the tasks that already exist at the start: those that no controller has picked up, the runs of schedules, and the
// trees of those that were delegated.
func (r attendant) unbegun(ctx context.Context) error {
	err := r.tasks.EachOf(ctx, &internalversion.ListOptions{}, func(t *v1alpha1.Task) {
		if t.Status.Phase == "" {
			r.attendance.created(t)
		}
		r.runs.created(t)
		if d := t.Status.Delegation; d != nil {
			r.trees.add(t.Namespace, t.Name, t.UID, d)
		}
	})
	if err != nil {
		return err
	}
	r.runs.loaded()
	defer close(r.trees.known)
	return r.findLeftovers(ctx)
}

// loaded waits until all delegated tasks of the store are known.
func (t *trees) loaded(ctx context.Context) error {
	select {
	case <-t.known:
		return nil
	case <-ctx.Done():
		return apierrors.NewServiceUnavailable("the server has not read all tasks yet; try again")
	}
}

// findLeftovers looks up the root of each tree that is known, once, at the start of the server.
func (r attendant) findLeftovers(ctx context.Context) error {
	r.trees.mu.Lock()
	var names []types.NamespacedName
	for name := range r.trees.leftovers.roots {
		names = append(names, name)
	}
	r.trees.mu.Unlock()
	for _, name := range names {
		for noted := types.UID(""); ; { // until what was noted was still so afterwards
			t, err := r.tasks.Get(request.WithNamespace(ctx, name.Namespace), name.Name)
			if err != nil && !apierrors.IsNotFound(err) {
				return err
			}
			now := types.UID("")
			if err == nil && t.Status.Delegation == nil {
				now = t.UID
			}
			if now == noted {
				break
			}
			r.trees.mu.Lock()
			if noted != "" {
				r.trees.named(name, noted, false)
			}
			if now != "" {
				r.trees.named(name, now, true)
			}
			r.trees.mu.Unlock()
			noted = now
		}
	}
	return nil
}

// lookAfter marks a task that no controller picked up. It returns when to look again; 0 means that this is not needed.
func (r attendant) lookAfter(ctx context.Context, key types.NamespacedName) (again time.Duration, err error) {
	if again = r.attendance.progress(key.Namespace); again > 0 {
		return again, nil // of a long queue nothing is read as long as it moves
	}
	ctx = request.WithNamespace(ctx, key.Namespace)
	t, err := r.tasks.Get(ctx, key.Name)
	if apierrors.IsNotFound(err) {
		return 0, nil
	}
	if err != nil || !waitsForController(t) {
		return 0, err
	}
	if left := r.attendance.left(t); left > 0 {
		return left, nil
	}
	_, err = r.tasks.UpdateStored(ctx, key.Name, func(now *v1alpha1.Task) error {
		if now.UID != t.UID || !waitsForController(now) {
			return nil
		}
		now.Status.Message = noController(key.Namespace)
		meta.SetStatusCondition(&now.Status.Conditions, metav1.Condition{
			Type: v1alpha1.ConditionWaitingToStart, Status: metav1.ConditionTrue, Reason: v1alpha1.ReasonNoController,
			Message: now.Status.Message, ObservedGeneration: now.Generation, LastTransitionTime: metav1.NewTime(r.clock.Now()),
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
