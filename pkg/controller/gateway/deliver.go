// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package gateway

import (
	"context"
	"fmt"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	"github.com/platform-ai/platform/pkg/apis/core/v1alpha1"
)

// senders is how many deliveries are sent at once, at least, and at most half of them by one gateway: an adapter that takes long must not
// hold those of others.
const senders = 32

const (
	// poll is when an adapter that cannot be reached is tried again.
	poll = 500 * time.Millisecond
	// patience is when a session that waits for its gateway is looked at again, in case that it was not woken.
	patience = 10 * time.Second
)

func (w *world) addDeliveries(mgr manager.Manager) error {
	n := max(senders, w.o.BatchSize)
	d := &sender{world: w, room: newRoom(n / 2)}
	return builder.ControllerManagedBy(mgr).Named("gatewaydelivery").WithOptions(options(n)).
		Watches(&v1alpha1.GatewayDelivery{}, handler.EnqueueRequestsFromMapFunc(toSession)).
		Watches(&v1alpha1.Gateway{}, handler.EnqueueRequestsFromMapFunc(d.reached), builder.WithPredicates(whenReady(func(g *v1alpha1.Gateway) bool { return g.Status.Ready }))).
		WatchesRawSource(source.Func(func(_ context.Context, q workqueue.TypedRateLimitingInterface[reconcile.Request]) error {
			d.room.wake(q.Add)
			return nil
		})).
		Complete(d)
}

// sender has the deliveries of sessions sent.
type sender struct {
	*world
	room *room
}

// reached wakes the sessions with open deliveries of a gateway whose adapter answers again, or that is gone.
func (d *sender) reached(ctx context.Context, o client.Object) []reconcile.Request {
	d.room.open(o.GetUID())
	var list v1alpha1.GatewayDeliveryList
	if err := d.List(ctx, &list, client.InNamespace(o.GetNamespace()), client.MatchingFields{ofGateway: o.GetName()}, client.UnsafeDisableDeepCopy); err != nil {
		return nil // the cache has ended
	}
	return requests(list.Items, func(d *v1alpha1.GatewayDelivery) types.NamespacedName {
		return types.NamespacedName{Namespace: d.Namespace, Name: d.Spec.SessionName}
	})
}

// Reconcile has the deliveries of a session sent that are due, one after the other.
func (d *sender) Reconcile(ctx context.Context, req reconcile.Request) (reconcile.Result, error) {
	var list v1alpha1.GatewayDeliveryList
	err := d.List(ctx, &list, client.InNamespace(req.Namespace), client.MatchingFields{ofSession: req.Name}, client.UnsafeDisableDeepCopy)
	if err != nil {
		return reconcile.Result{}, fmt.Errorf("deliveries: %w", err)
	}
	open := make([]*v1alpha1.GatewayDelivery, 0, len(list.Items))
	for i := range list.Items {
		if d.outdated(&list.Items[i]) {
			return reconcile.Result{RequeueAfter: again}, nil
		}
		open = append(open, &list.Items[i])
	}
	for {
		head, due := turn(open)
		if head == nil {
			return reconcile.Result{}, nil
		}
		if wait := due.Sub(d.now()); wait > 0 {
			return reconcile.Result{RequeueAfter: wait}, nil
		}
		is := head.Spec.GatewayUID
		if !d.room.enter(is, req) {
			return reconcile.Result{RequeueAfter: patience}, nil // it is woken when there is room
		}
		sent, err := d.sendDelivery(ctx, head.Namespace, head.Name)
		d.room.leave(is, !apierrors.IsTooManyRequests(err))
		at := indexOf(open, head)
		switch {
		case apierrors.IsNotFound(err): // it was deleted
			open = append(open[:at:at], open[at+1:]...)
			continue
		case apierrors.IsTooManyRequests(err): // its adapter cannot be reached
			return reconcile.Result{RequeueAfter: poll}, nil
		case apierrors.IsConflict(err): // not yet: the server knows more than the cache
			return reconcile.Result{RequeueAfter: again}, nil
		case err != nil:
			return reconcile.Result{}, err
		}
		d.wrote(sent)
		d.count(sent)
		open[at] = sent
	}
}

// count counts what became of a delivery that was sent.
func (d *sender) count(sent *v1alpha1.GatewayDelivery) {
	d.counts.deliveries.WithLabelValues(resultOf(sent.Status.State)).Inc()
	switch sent.Status.State {
	case v1alpha1.GatewayDeliveryDeadLettered:
		d.counts.deadLetters.WithLabelValues(kindDelivery).Inc()
	case v1alpha1.GatewayDeliveryDelivered:
		if at := sent.Status.DeliveredAt; at != nil {
			d.counts.deliveryLatency.Observe(max(at.Sub(sent.Spec.CreatedAt.Time), 0).Seconds())
		}
	}
}
