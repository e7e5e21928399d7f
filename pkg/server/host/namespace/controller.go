// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

// Package namespace keeps the namespaces of a standalone host: each active one
// has its ServiceAccount "default", and one that is being deleted is emptied
// of everything in it and then let go.
//
// It works on the storage of the resources, below admission and authorization,
// and follows watches, so what a crash interrupted goes on after the restart.
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
	// DefaultServiceAccount is in every namespace.
	DefaultServiceAccount = "default"
	// workers is how many namespaces are handled at once.
	workers = 4
	// A namespace whose contents wait for finalizers is looked at again after
	// this, doubling up to the maximum.
	firstRetry = 50 * time.Millisecond
	lastRetry  = 10 * time.Second
	// settle is how long a request may take from its admission to its write
	// without being missed.
	settle = 100 * time.Millisecond
)

// Content is one namespaced resource whose objects are deleted with their
// namespace.
type Content struct {
	Resource schema.GroupResource
	// DeleteAll starts the deletion of all objects of a namespace.
	DeleteAll func(ctx context.Context, namespace string) error
	// Count tells how many objects are left in a namespace.
	Count func(ctx context.Context, namespace string) (int, error)
}

// Config is what the controller works with.
type Config struct {
	// Namespaces and ServiceAccounts list and watch all of them.
	Namespaces, ServiceAccounts cache.ListerWatcher
	// Contents are all namespaced resources.
	Contents []Content
	// Get reads a namespace from the store, not from a cache: while the one
	// that is being deleted is there, no new one of its name can be.
	Get func(ctx context.Context, name string) (*corev1.Namespace, error)
	// EnsureServiceAccount makes the ServiceAccount "default" of a namespace if
	// it is not there.
	EnsureServiceAccount func(ctx context.Context, namespace string) error
	// SetConditions stores deletion conditions of a namespace.
	SetConditions func(ctx context.Context, namespace string, conditions []corev1.NamespaceCondition) error
	// Finalize lets an emptied namespace go.
	Finalize func(ctx context.Context, namespace *corev1.Namespace) error
	// Clock times retries.
	Clock clock.WithTicker
}

// Controller is made by New.
type Controller struct {
	c          Config
	queue      workqueue.TypedRateLimitingInterface[string]
	namespaces cache.SharedIndexInformer
	accounts   cache.SharedIndexInformer
}

// New makes a controller that does nothing yet.
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

// accountGone brings back a deleted default ServiceAccount.
func (n *Controller) accountGone(o any) {
	if d, ok := o.(cache.DeletedFinalStateUnknown); ok {
		o = d.Obj
	}
	if a, ok := o.(*corev1.ServiceAccount); ok && a.Name == DefaultServiceAccount {
		n.queue.Add(a.Namespace)
	}
}

// Run works until ctx ends and returns when all its goroutines have.
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
				klog.FromContext(ctx).Error(err, "Namespace will be retried", "namespace", name)
			}
			n.queue.AddRateLimited(name)
		}
		n.queue.Done(name)
	}
}

// errRemaining means that something in the namespace waits for a finalizer.
var errRemaining = errors.New("namespace: contents remain")

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

// empty deletes the contents and lets the namespace go when none remain. It
// looks twice, because a request that was admitted before the deletion began
// may write after the first look.
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

// sweep deletes the contents of a namespace. It returns what remains, in words,
// and what could not be deleted or counted.
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

// conditions are Kubernetes' conditions of a namespace that cannot go yet.
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
