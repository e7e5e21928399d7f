// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

// Package garbage follows owner references on a standalone host, as the garbage collector of kube-controller-manager does in a
// cluster, where this one does not run. An object whose owners are all gone is deleted. What a deletion does with the objects that
// the deleted one owns depends on its propagation policy:
//
//   - Background, the default: the owner goes at once, then they are deleted.
//   - Foreground: the owner gets a finalizer and stays until those that have blockOwnerDeletion are gone.
//   - Orphan: the owner gets a finalizer and stays until no object names it any more.
//
// The generic store sets these finalizers. The collector watches all kinds that are stored, but remembers only objects that have
// owners or wait for it. Before it acts it reads the object and its owners from the store, so what it remembers may be late. A
// deletion is one of the exact object (by UID) and asks the policies as a request would. A refused one is tried again, after pauses
// that grow.
//
// The differences to Kubernetes are these. An owner of a kind that the server does not store is refused when the reference is
// written (Kinds), because nothing could ever follow it. Stored objects that name one stay. Events and the records of
// gateways own nothing and are not collected: their own lifetime removes them.
package garbage

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/util/workqueue"
	"k8s.io/klog/v2"
	"k8s.io/utils/clock"
)

const (
	workers = 4
	// What fails is tried again after firstRetry. The delay doubles each time, up to the maximum.
	firstRetry = 50 * time.Millisecond
	lastRetry  = time.Minute
	// settle is how long the watch of another kind may take to deliver an object that was written before its owner was deleted.
	settle = 100 * time.Millisecond
)

// Kind is a kind whose objects are stored.
type Kind struct {
	Kind       schema.GroupVersionKind
	Namespaced bool
	// Objects lists the objects that matter (see Matters), and watches all. Their metadata suffices.
	Objects cache.ListerWatcher
	// Get reads an object from the store, not from a cache.
	Get func(ctx context.Context, namespace, name string) (metav1.Object, error)
	// Delete deletes an object if the policies allow that.
	Delete func(ctx context.Context, namespace, name string, options *metav1.DeleteOptions) error
	// Change changes the metadata of an object on behalf of the server.
	Change func(ctx context.Context, namespace, name string, mutate func(metav1.Object)) error
}

// Collector follows owner references. Use New to make one.
type Collector struct {
	kinds map[schema.GroupVersionKind]Kind
	graph *graph
	queue workqueue.TypedRateLimitingInterface[types.UID]
	// unlisted counts the kinds whose objects are not known yet. listed is closed when there are none.
	unlisted atomic.Int64
	listed   chan struct{}
}

// New makes a collector for all stored kinds. It does nothing until Run is called.
func New(kinds []Kind, c clock.WithTicker) *Collector {
	g := &Collector{
		kinds: make(map[schema.GroupVersionKind]Kind, len(kinds)), graph: newGraph(), listed: make(chan struct{}),
		queue: workqueue.NewTypedRateLimitingQueueWithConfig(
			workqueue.NewTypedItemExponentialFailureRateLimiter[types.UID](firstRetry, lastRetry),
			workqueue.TypedRateLimitingQueueConfig[types.UID]{Name: "garbage", Clock: c},
		),
	}
	for _, k := range kinds {
		g.kinds[k.Kind] = k
	}
	return g
}

// Run works until ctx ends. It returns when all its goroutines have ended.
func (c *Collector) Run(ctx context.Context) {
	var wg sync.WaitGroup
	c.unlisted.Store(int64(len(c.kinds)))
	for _, k := range c.kinds {
		r := cache.NewReflectorWithOptions(k.Objects, nil, &sink{c: c, kind: k.Kind}, cache.ReflectorOptions{Name: "garbage/" + k.Kind.Kind})
		wg.Go(func() { r.RunWithContext(ctx) }) // ends with ctx
	}
	select {
	case <-c.listed:
		for range workers {
			wg.Go(func() { c.work(ctx) }) // ends when the queue is shut down
		}
		<-ctx.Done()
	case <-ctx.Done():
	}
	c.queue.ShutDown()
	wg.Wait()
}

func (c *Collector) work(ctx context.Context) {
	for {
		uid, stop := c.queue.Get()
		if stop {
			return
		}
		switch err := c.process(ctx, uid); {
		case err == nil:
			c.queue.Forget(uid)
		case ctx.Err() != nil:
		default:
			klog.FromContext(ctx).Error(err, "Cannot follow owner references yet; it will be retried")
			c.queue.AddRateLimited(uid)
		}
		c.queue.Done(uid)
	}
}

func (c *Collector) enqueue(uids ...types.UID) {
	for _, uid := range uids {
		c.queue.Add(uid)
	}
}

// sink receives the objects of one kind from a reflector.
type sink struct {
	c    *Collector
	kind schema.GroupVersionKind
	once sync.Once
}

var _ cache.ReflectorStore = (*sink)(nil)

func (s *sink) Add(obj any) error { return s.set(obj) }

func (s *sink) Update(obj any) error { return s.set(obj) }

func (s *sink) set(obj any) error {
	o, ok := obj.(metav1.Object)
	if !ok {
		return fmt.Errorf("the watch of %s sent a %T", s.kind.Kind, obj)
	}
	s.put(o)
	return nil
}

func (s *sink) put(o metav1.Object) {
	changed := s.c.graph.set(s.kind, o)
	if n := s.c.graph.get(o.GetUID()); n != nil && n.waits && len(changed) > 0 {
		s.c.queue.AddAfter(n.uid, settle)
	}
	for _, uid := range changed {
		if uid != o.GetUID() || o.GetDeletionTimestamp() == nil {
			s.c.enqueue(uid)
		}
	}
}

func (s *sink) Delete(obj any) error {
	o, ok := obj.(metav1.Object)
	if !ok {
		return fmt.Errorf("the watch of %s sent a %T", s.kind.Kind, obj)
	}
	s.c.enqueue(s.c.graph.remove(o.GetUID())...)
	return nil
}

// Replace takes over a list: at the start, and after a watch that could not be resumed.
func (s *sink) Replace(list []any, _ string) error {
	exist := make(map[types.UID]bool, len(list))
	for _, item := range list {
		o, ok := item.(metav1.Object)
		if !ok {
			return fmt.Errorf("the list of %s has a %T", s.kind.Kind, item)
		}
		exist[o.GetUID()] = true
		s.put(o)
	}
	gone, suspects := s.c.graph.missing(s.kind, exist)
	for _, uid := range gone {
		s.c.enqueue(s.c.graph.remove(uid)...)
	}
	s.c.enqueue(suspects...)
	s.once.Do(func() {
		if s.c.unlisted.Add(-1) == 0 {
			close(s.c.listed)
		}
	})
	return nil
}

func (*sink) Resync() error { return nil }
