// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

// Package runtimepool reports what RuntimePools are doing, and deletes those that nobody needs any more. A pool is the capacity for the
// tasks with a coding agent of one namespace, one identity and one image: how many of them hold a session, and how many of these work.
// The sessions are processes or Pods of the tasks themselves. The controller of tasks makes a pool when the first task needs it, and has
// the ledger of its places, which is derived from the tasks. So this controller stores nothing that has to be right: the status of a pool
// is a report, which is written at most every reportInterval.
//
// A pool belongs to one image. When the operator changes the program of an agent, the controller of tasks makes another pool, this one
// drains, and is deleted when its last task is over. A pool without tasks is deleted after a time. Only spec.capacity is the
// administrators': it is set when the pool is made, kept as it is changed, and obeyed at once.
package runtimepool

import (
	"context"
	"fmt"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/workqueue"
	"k8s.io/klog/v2"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	ctrlevent "sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	"github.com/platform-ai/platform/pkg/agentprogram"
	"github.com/platform-ai/platform/pkg/apis/core/v1alpha1"
	"github.com/platform-ai/platform/pkg/controller/step"
)

// reportInterval is how long changes of a pool's use are collected before its status is written.
const reportInterval = 250 * time.Millisecond

// Ledger has the places of pools.
type Ledger interface {
	// Admit says what a pool takes on, and whether it takes anything.
	Admit(pool types.NamespacedName, limits agentprogram.PoolLimits, open bool)
	// Use returns what of a pool is in use; false while that is not known.
	Use(pool types.NamespacedName) (agentprogram.PoolUse, bool)
	// Retire closes a pool for its deletion, unless there are tasks in it, and Keep opens it again.
	Retire(pool types.NamespacedName) bool
	Keep(pool types.NamespacedName)
	// Gone notes that a pool was deleted.
	Gone(pool types.NamespacedName)
	// OnChange sets the function that is called with a pool whose use has changed. It must not block.
	OnChange(changed func(pool types.NamespacedName))
}

// Options configure the controller.
type Options struct {
	Ledger Ledger
	Clock  clock.PassiveClock
	// IdleTTL is how long a pool without tasks is kept.
	IdleTTL time.Duration
	// Image returns what is run for a type of coding agents, and Lacks why nothing is; empty if something is.
	Image func(v1alpha1.AgentRuntimeType) (string, error)
	Lacks func(v1alpha1.AgentRuntimeType) string
	// Pods is set if sessions are Pods.
	Pods bool
	// Metrics, if set, registers the metrics of pools.
	Metrics prometheus.Registerer
}

// Add registers the controller.
func Add(ctx context.Context, mgr manager.Manager, o Options) error {
	m, err := show(ctx, o.Metrics, o.Ledger, mgr.GetClient())
	if err != nil {
		return err
	}
	c := controller{Options: o, deleted: m.deleted, remove: func(ctx context.Context, p *v1alpha1.RuntimePool) error {
		return mgr.GetClient().Delete(ctx, p, client.Preconditions{UID: &p.UID, ResourceVersion: &p.ResourceVersion})
	}}
	err = builder.ControllerManagedBy(mgr).Named("runtimepool").
		For(&v1alpha1.RuntimePool{}).
		Watches(&v1alpha1.RuntimePool{}, neighbours(mgr.GetClient(), o.Ledger)).
		WatchesRawSource(changes(o.Ledger)).
		Complete(&step.Reconciler[*v1alpha1.RuntimePool]{
			Client: mgr.GetClient(),
			New:    func() *v1alpha1.RuntimePool { return &v1alpha1.RuntimePool{} },
			Steps:  []step.Step[*v1alpha1.RuntimePool]{{Name: "report", Do: c.do}},
		})
	if err != nil {
		return fmt.Errorf("runtime pool controller: %w", err)
	}
	return nil
}

// changes wakes pools whose use has changed. What changes within a moment is reported together.
func changes(l Ledger) source.Source {
	return source.Func(func(_ context.Context, q workqueue.TypedRateLimitingInterface[reconcile.Request]) error {
		l.OnChange(func(pool types.NamespacedName) { q.AddAfter(reconcile.Request{NamespacedName: pool}, reportInterval) })
		return nil
	})
}

// neighbours wakes the pools of a namespace when one is made there, because it may take the place of another one, and tells the ledger
// which pools are gone.
func neighbours(c client.Reader, l Ledger) handler.EventHandler {
	return handler.Funcs{
		CreateFunc: func(ctx context.Context, e ctrlevent.CreateEvent, q workqueue.TypedRateLimitingInterface[reconcile.Request]) {
			var list v1alpha1.RuntimePoolList
			if err := c.List(ctx, &list, client.InNamespace(e.Object.GetNamespace())); err != nil {
				klog.FromContext(ctx).Error(err, "RuntimePools cannot be looked for", "namespace", e.Object.GetNamespace())
				return
			}
			for i := range list.Items {
				q.Add(reconcile.Request{NamespacedName: client.ObjectKeyFromObject(&list.Items[i])})
			}
		},
		DeleteFunc: func(_ context.Context, e ctrlevent.DeleteEvent, _ workqueue.TypedRateLimitingInterface[reconcile.Request]) {
			l.Gone(client.ObjectKeyFromObject(e.Object))
		},
	}
}

// controller looks after pools.
type controller struct {
	Options
	deleted *prometheus.CounterVec
	remove  func(context.Context, *v1alpha1.RuntimePool) error
}

func (c controller) do(ctx context.Context, p *v1alpha1.RuntimePool) error {
	key := client.ObjectKeyFromObject(p)
	kind := agentprogram.TypeOf(p)
	if kind == "" {
		unmanaged(p)
		return step.ErrDone
	}
	missing := c.Lacks(kind)
	current := false
	if missing == "" {
		image, err := c.Image(kind)
		if err != nil {
			return fmt.Errorf("program of %s: %w", kind, err)
		}
		current = image == p.Spec.Runtime.Image
	}
	c.Ledger.Admit(key, agentprogram.LimitsOf(p), current)
	use, known := c.Ledger.Use(key)
	if !known {
		return step.ErrDone // the ledger wakes the pool
	}
	c.report(p, &use, current, missing)
	if use.Tasks > 0 {
		return step.ErrDone
	}
	if left := c.left(p, &use); current && left > 0 {
		return step.Wait{After: left, Reason: "the pool is idle"}
	}
	return c.delete(ctx, p, key)
}

// left returns how long an idle pool is kept.
func (c controller) left(p *v1alpha1.RuntimePool, use *agentprogram.PoolUse) time.Duration {
	since := p.CreationTimestamp.Time
	for _, at := range []time.Time{use.Ended.At, use.EmptySince} {
		if at.After(since) {
			since = at
		}
	}
	return c.IdleTTL - c.Clock.Now().Sub(since)
}

func (c controller) delete(ctx context.Context, p *v1alpha1.RuntimePool, key types.NamespacedName) error {
	if !c.Ledger.Retire(key) {
		return step.ErrDone // a task has come; its end wakes the pool
	}
	err := c.remove(ctx, p)
	switch {
	case err == nil:
		c.deleted.WithLabelValues(p.Namespace, p.Name).Inc()
		return step.ErrDone
	case apierrors.IsNotFound(err):
		return step.ErrDone
	}
	c.Ledger.Keep(key)
	return err
}
