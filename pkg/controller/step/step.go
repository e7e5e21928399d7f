// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

// Package step is the structure that all controllers share: a reconcile is an ordered list of
// small steps over one object. Steps change the object's status in memory, and their outcome
// says how the reconcile continues. At the end, one patch writes what they changed; it fails if
// the object changed meanwhile.
package step

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/klog/v2"
	"k8s.io/utils/lru"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

// Step handles one concern. If its outcome is nil, the next step runs. ErrDone, Wait and any
// other error end the list.
type Step[T client.Object] struct {
	// Name is one lower-case word, for logs and errors.
	Name string
	Do   func(ctx context.Context, obj T) error
}

// ErrDone ends the list: there is nothing more to do until the object changes.
var ErrDone = errors.New("done")

// Wait ends the list until After has passed, or until the object changes. It is not a failure:
// status and events show its Reason.
type Wait struct { //nolint:errname // an outcome more than an error
	// After is 0 if an event will wake the object.
	After time.Duration
	// Reason is text for people.
	Reason string
}

// Error makes Wait an error, so that it can be an outcome.
func (w Wait) Error() string { return fmt.Sprintf("wait %s: %s", w.After, w.Reason) }

// Reconciler runs steps over objects of one kind.
type Reconciler[T client.Object] struct {
	Client client.Client
	// New returns an empty object.
	New func() T
	// Steps run in this order.
	Steps []Step[T]

	past past
}

// past remembers, by UID, the versions of objects that this process has replaced itself. While the cache still shows
// one of them, a reconcile does nothing: its steps would decide by an outdated state, and the event for the newer
// version wakes the object.
type past struct {
	once     sync.Once
	versions *lru.Cache
}

// maxPast bounds how many objects are remembered. The cache usually follows within a moment.
const maxPast = 4096

func (p *past) byUID() *lru.Cache {
	p.once.Do(func() { p.versions = lru.New(maxPast) })
	return p.versions
}

// add remembers versions, unless they are the newest.
func (p *past) add(obj client.Object, versions ...string) {
	versions = slices.DeleteFunc(versions, func(v string) bool { return v == obj.GetResourceVersion() })
	if len(versions) > 0 {
		p.byUID().Add(obj.GetUID(), versions)
	}
}

// shown reports whether the object is in a version that was replaced.
func (p *past) shown(obj client.Object) bool {
	known, ok := p.byUID().Get(obj.GetUID())
	if !ok {
		return false
	}
	versions, ok := known.([]string)
	return ok && slices.Contains(versions, obj.GetResourceVersion())
}

// conflictDelay gives the cache time to see the write that caused the conflict.
const conflictDelay = 50 * time.Millisecond

// Reconcile runs the steps and writes the status.
func (r *Reconciler[T]) Reconcile(ctx context.Context, req reconcile.Request) (reconcile.Result, error) {
	obj := r.New()
	if err := r.Client.Get(ctx, req.NamespacedName, obj); err != nil {
		return reconcile.Result{}, client.IgnoreNotFound(err)
	}
	if r.past.shown(obj) {
		return reconcile.Result{}, nil
	}
	read := obj.GetResourceVersion()
	before, ok := obj.DeepCopyObject().(T)
	if !ok {
		return reconcile.Result{}, fmt.Errorf("a deep copy of %T has another type", obj)
	}
	outcome := r.run(ctx, obj)
	written := obj.GetResourceVersion() // a step may have written metadata
	patchErr := r.patchStatus(ctx, before, obj)
	r.past.add(obj, read, written)
	if apierrors.IsConflict(patchErr) || apierrors.IsConflict(outcome) {
		return reconcile.Result{RequeueAfter: conflictDelay}, nil
	}
	if apierrors.IsNotFound(patchErr) {
		patchErr = nil // deleted meanwhile; the event for that follows
	}
	return result(ctx, outcome, patchErr)
}

func (r *Reconciler[T]) run(ctx context.Context, obj T) error {
	for _, s := range r.Steps {
		err := s.Do(ctx, obj)
		if err == nil {
			continue
		}
		if isOutcome(err) {
			return err
		}
		return fmt.Errorf("%s: %w", s.Name, err)
	}
	return nil
}

func isOutcome(err error) bool {
	if errors.Is(err, ErrDone) {
		return true
	}
	_, ok := errors.AsType[Wait](err)
	return ok
}

// patchStatus writes the status only if a step changed something.
func (r *Reconciler[T]) patchStatus(ctx context.Context, before, obj T) error {
	same, err := sameStatus(before, obj)
	if err != nil || same {
		return err
	}
	before.SetResourceVersion(obj.GetResourceVersion()) // a step that wrote metadata has changed it
	patch := client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{})
	if err := r.Client.Status().Patch(ctx, obj, patch); err != nil {
		return fmt.Errorf("status: %w", err)
	}
	return nil
}

// sameStatus compares as JSON, in which an absent list is an empty one. Most reconciles change nothing, which is seen
// without that.
func sameStatus(a, b runtime.Object) (bool, error) {
	if equality.Semantic.DeepEqual(a, b) {
		return true, nil
	}
	x, err := runtime.DefaultUnstructuredConverter.ToUnstructured(a)
	if err != nil {
		return false, fmt.Errorf("status: %w", err)
	}
	y, err := runtime.DefaultUnstructuredConverter.ToUnstructured(b)
	if err != nil {
		return false, fmt.Errorf("status: %w", err)
	}
	return equality.Semantic.DeepEqual(x["status"], y["status"]), nil
}

// result turns an outcome into a result for the work queue. The queue logs each error once, and
// retries with backoff.
func result(ctx context.Context, outcome, patchErr error) (reconcile.Result, error) {
	if patchErr != nil {
		if outcome != nil && !isOutcome(outcome) {
			return reconcile.Result{}, errors.Join(outcome, patchErr)
		}
		return reconcile.Result{}, patchErr
	}
	if w, ok := errors.AsType[Wait](outcome); ok {
		klog.FromContext(ctx).V(4).Info("Waiting", "after", w.After, "reason", w.Reason)
		return reconcile.Result{RequeueAfter: w.After}, nil
	}
	if outcome == nil || isOutcome(outcome) {
		return reconcile.Result{}, nil
	}
	return reconcile.Result{}, outcome
}
