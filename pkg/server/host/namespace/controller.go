// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

// Package namespace maintains the namespaces of a standalone host. Each active
// namespace has its ServiceAccount "default". A namespace that is being deleted
// is emptied and then removed.
//
// The controller works directly on the storage of the resources, below
// authorization. Policies are asked about each deletion, as for single deletes;
// what they refuse stays, and the namespace with it, with a condition that says
// so. It follows watches, so that after a restart it continues what a crash
// interrupted.
package namespace

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/util/workqueue"
	"k8s.io/klog/v2"
	"k8s.io/utils/clock"
)

const (
	// DefaultServiceAccount is the ServiceAccount that exists in every
	// namespace.
	DefaultServiceAccount = "default"
	// workers is the number of namespaces handled concurrently.
	workers = 4
	// A namespace whose contents wait for finalizers is checked again after
	// firstRetry. The delay doubles each time, up to the maximum.
	firstRetry = 50 * time.Millisecond
	lastRetry  = 10 * time.Second
	// settle is how long a request may take from its admission to its write
	// without its object being missed.
	settle = 100 * time.Millisecond
)

// Content is one namespaced resource whose objects are deleted together with
// their namespace.
type Content struct {
	Resource schema.GroupResource
	// DeleteAll starts the deletion of all objects of a namespace that policies
	// allow to delete.
	DeleteAll func(ctx context.Context, namespace string) error
	// Count returns how many objects are left in a namespace.
	Count func(ctx context.Context, namespace string) (int, error)
}

// Config is what the controller needs.
type Config struct {
	// Namespaces and ServiceAccounts list and watch all objects of these kinds.
	Namespaces, ServiceAccounts cache.ListerWatcher
	// Contents are all namespaced resources.
	Contents []Content
	// Get reads a namespace from the store, not from a cache. As long as a
	// namespace that is being deleted exists, no new one can have its name.
	Get func(ctx context.Context, name string) (*corev1.Namespace, error)
	// EnsureServiceAccount creates the ServiceAccount "default" of a namespace
	// if it does not exist.
	EnsureServiceAccount func(ctx context.Context, namespace string) error
	// SetConditions stores the conditions that describe the progress of a
	// namespace's deletion.
	SetConditions func(ctx context.Context, namespace string, conditions []corev1.NamespaceCondition) error
	// Finalize removes Kubernetes' finalizer from an emptied namespace.
	Finalize func(ctx context.Context, namespace *corev1.Namespace) error
	// Clock times retries.
	Clock clock.WithTicker
}

// Controller maintains namespaces. Use New to make one.
type Controller struct {
	c          Config
	queue      workqueue.TypedRateLimitingInterface[string]
	namespaces cache.SharedIndexInformer
	accounts   cache.SharedIndexInformer
}

// New makes a controller. It does nothing until Run is called.
func New(c Config) (*Controller, error) {
	n := &Controller{
		c: c,
		queue: workqueue.NewTypedRateLimitingQueueWithConfig(
			workqueue.NewTypedItemExponentialFailureRateLimiter[string](firstRetry, lastRetry),
			workqueue.TypedRateLimitingQueueConfig[string]{Name: "namespaces", Clock: c.Clock},
		),
		namespaces: cache.NewSharedIndexInformer(c.Namespaces, &corev1.Namespace{}, 0, nil),
		accounts:   cache.NewSharedIndexInformer(c.ServiceAccounts, &corev1.ServiceAccount{}, 0, nil),
	}
	_, err := n.namespaces.AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc:    func(o any) { n.enqueue(o) },
		UpdateFunc: func(_, o any) { n.enqueue(o) },
	})
	if err != nil {
		return nil, fmt.Errorf("namespace controller: %w", err)
	}
	_, err = n.accounts.AddEventHandler(cache.ResourceEventHandlerFuncs{DeleteFunc: n.accountGone})
	if err != nil {
		return nil, fmt.Errorf("namespace controller: %w", err)
	}
	return n, nil
}

func (n *Controller) enqueue(o any) {
	if ns, ok := o.(*corev1.Namespace); ok {
		n.queue.Add(ns.Name)
	}
}

// accountGone queues the namespace of a deleted default ServiceAccount, which
// is then created again.
func (n *Controller) accountGone(o any) {
	if d, ok := o.(cache.DeletedFinalStateUnknown); ok {
		o = d.Obj
	}
	if a, ok := o.(*corev1.ServiceAccount); ok && a.Name == DefaultServiceAccount {
		n.queue.Add(a.Namespace)
	}
}

// Run works until ctx ends. It returns when all its goroutines have ended.
func (n *Controller) Run(ctx context.Context) {
	var wg sync.WaitGroup
	wg.Go(func() { n.namespaces.RunWithContext(ctx) })
	wg.Go(func() { n.accounts.RunWithContext(ctx) })
	if cache.WaitForCacheSync(ctx.Done(), n.namespaces.HasSynced, n.accounts.HasSynced) {
		for range workers {
			wg.Go(func() { n.work(ctx) }) // ends when the queue is shut down
		}
	}
	<-ctx.Done()
	n.queue.ShutDown()
	wg.Wait()
}

func (n *Controller) work(ctx context.Context) {
	for {
		name, stop := n.queue.Get()
		if stop {
			return
		}
		switch err := n.sync(ctx, name); {
		case err == nil:
			n.queue.Forget(name)
		case ctx.Err() != nil:
		default:
			if !errors.Is(err, errRemaining) {
				klog.FromContext(ctx).Error(err, "Cannot empty a deleted namespace yet; it will be retried", "namespace", name)
			}
			n.queue.AddRateLimited(name)
		}
		n.queue.Done(name)
	}
}

// errRemaining means that something in the namespace waits for a finalizer.
var errRemaining = errors.New("the namespace still has contents")

func (n *Controller) sync(ctx context.Context, name string) error {
	ns, err := n.c.Get(ctx, name)
	if err == nil && ns.DeletionTimestamp != nil {
		err = n.empty(ctx, ns)
	} else if err == nil {
		err = n.c.EnsureServiceAccount(ctx, name)
	}
	if apierrors.IsNotFound(err) { // gone meanwhile
		return nil
	}
	return err
}

// empty deletes the contents and finalizes the namespace when none remain. It
// checks twice, because a request that was admitted before the deletion began
// may write after the first check.
func (n *Controller) empty(ctx context.Context, ns *corev1.Namespace) error {
	for look := range 2 {
		if look > 0 {
			select {
			case <-n.c.Clock.After(settle):
			case <-ctx.Done():
				return ctx.Err()
			}
		}
		left, failed := n.sweep(ctx, ns.Name)
		if len(left)+len(failed) > 0 {
			if err := n.c.SetConditions(ctx, ns.Name, conditions(left, failed)); err != nil {
				return err
			}
			if len(failed) > 0 {
				return errors.Join(failed...)
			}
			return errRemaining
		}
	}
	return n.c.Finalize(ctx, ns)
}

// sweep deletes the contents of a namespace. It returns descriptions of what
// remains, and the errors of deleting and counting.
func (n *Controller) sweep(ctx context.Context, name string) (left []string, failed []error) {
	for _, c := range n.c.Contents {
		count, err := c.Count(ctx, name)
		if err == nil && count == 0 {
			continue
		}
		if err == nil {
			err = c.DeleteAll(ctx, name)
		}
		if err == nil {
			count, err = c.Count(ctx, name)
		}
		switch {
		case err != nil:
			failed = append(failed, fmt.Errorf("%s: %w", c.Resource, err))
		case count > 0:
			left = append(left, fmt.Sprintf("%s has %d resource instances", c.Resource, count))
		}
	}
	return left, failed
}

// conditions returns Kubernetes' conditions for a namespace that cannot be
// removed yet.
func conditions(left []string, failed []error) []corev1.NamespaceCondition {
	failure := corev1.NamespaceCondition{
		Type: corev1.NamespaceDeletionContentFailure, Status: corev1.ConditionFalse,
		Reason: "ContentDeleted", Message: "All content successfully deleted, may be waiting on finalization",
	}
	if len(failed) > 0 {
		failure.Status, failure.Reason, failure.Message = corev1.ConditionTrue, "ContentDeletionFailed", errors.Join(failed...).Error()
	}
	remaining := corev1.NamespaceCondition{
		Type: corev1.NamespaceContentRemaining, Status: corev1.ConditionFalse,
		Reason: "ContentRemoved", Message: "All content successfully removed",
	}
	if len(left) > 0 {
		remaining.Status, remaining.Reason = corev1.ConditionTrue, "SomeResourcesRemain"
		remaining.Message = "Some resources are remaining: " + strings.Join(left, ", ")
	}
	return []corev1.NamespaceCondition{failure, remaining}
}
