// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package gateway

import (
	"context"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/platform-ai/platform/pkg/apis/core/v1alpha1"
)

// addDecisions adds the controller of events that decide on approvals. They do not wait for the questions of their session: the task of one may
// wait for them.
func (w *world) addDecisions(mgr manager.Manager) error {
	return builder.ControllerManagedBy(mgr).Named("gatewaydecision").WithOptions(options(parallel)).
		Watches(&v1alpha1.GatewayEvent{}, &handler.EnqueueRequestForObject{}, builder.WithPredicates(predicate.NewPredicateFuncs(decides))).
		Complete(reconcile.Func(w.decide))
}

// decides reports whether an object is an event that decides on an approval and has not ended.
func decides(o client.Object) bool {
	e, ok := o.(*v1alpha1.GatewayEvent)
	return ok && e.Status.Decision != nil && !eventEnded(e)
}

// decide has the server decide as an event says.
func (w *world) decide(ctx context.Context, req reconcile.Request) (reconcile.Result, error) {
	err := w.decideApproval(ctx, req.Namespace, req.Name)
	if apierrors.IsConflict(err) || apierrors.IsNotFound(err) { // it has ended, or is gone
		return reconcile.Result{}, nil
	}
	if err == nil {
		w.counts.dispatched(resultDecided)
	}
	return reconcile.Result{}, err
}
