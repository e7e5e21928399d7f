// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package gateway

import (
	"context"
	"fmt"
	"maps"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/platform-ai/platform/pkg/apis/core/v1alpha1"
	"github.com/platform-ai/platform/pkg/event"
)

// addDelivered adds the controller of deliveries that were delivered. One that is not recorded yet stays in the cache, so a controller that
// is started again goes on with it.
func (w *world) addDelivered(mgr manager.Manager) error {
	return builder.ControllerManagedBy(mgr).Named("gatewaydelivered").WithOptions(options(parallel)).
		Watches(&v1alpha1.GatewayDelivery{}, &handler.EnqueueRequestForObject{}, builder.WithPredicates(predicate.NewPredicateFuncs(unrecorded))).
		Complete(reconcile.Func(w.delivered))
}

// unrecorded reports whether an object is a delivery that was delivered and is not recorded yet.
func unrecorded(o client.Object) bool {
	d, ok := o.(*v1alpha1.GatewayDelivery)
	return ok && d.Status.State == v1alpha1.GatewayDeliveryDelivered && !d.Status.Recorded
}

// delivered writes down where people look for it that a text was delivered: in the stream and the annotations of its task, in its event, and in
// its binding.
func (w *world) delivered(ctx context.Context, req reconcile.Request) (reconcile.Result, error) {
	d := &v1alpha1.GatewayDelivery{}
	found, err := get(ctx, w.live, req.Namespace, req.Name, d)
	if err != nil || !found || !unrecorded(d) {
		return reconcile.Result{}, err
	}
	w.touch(ctx, d.Namespace, d.Spec.BindingName, "", outbound)
	if err := w.inEvent(ctx, d); err != nil {
		return reconcile.Result{}, err
	}
	if err := w.inTask(ctx, d); err != nil {
		return reconcile.Result{}, err
	}
	before := d.DeepCopy()
	d.Status.Recorded = true
	if err := client.IgnoreNotFound(w.Status().Patch(ctx, d, client.MergeFrom(before))); err != nil {
		return reconcile.Result{}, fmt.Errorf("delivery %s: %w", d.Name, err)
	}
	return reconcile.Result{}, nil
}

// inEvent writes the id of the answer in the chat system into the event.
func (w *world) inEvent(ctx context.Context, d *v1alpha1.GatewayDelivery) error {
	if d.Status.ProviderMessageID == "" {
		return nil
	}
	e := &v1alpha1.GatewayEvent{}
	found, err := get(ctx, w.live, d.Namespace, d.Spec.EventID, e)
	if err != nil || !found || e.Status.DeliveryID != d.Name || e.Status.ProviderMessageID == d.Status.ProviderMessageID {
		return err
	}
	before := e.DeepCopy()
	e.Status.ProviderMessageID = d.Status.ProviderMessageID
	if err := client.IgnoreNotFound(w.Status().Patch(ctx, e, client.MergeFrom(before))); err != nil {
		return fmt.Errorf("event %s: %w", e.Name, err)
	}
	return nil
}

// keyDelivered starts the keys of the events that say what was delivered.
const keyDelivered = "controller/gateway/"

// inTask appends an event to the stream of the task, and marks the task with its answer.
func (w *world) inTask(ctx context.Context, d *v1alpha1.GatewayDelivery) error {
	t := &v1alpha1.Task{}
	if d.Spec.TaskName == "" {
		return nil
	}
	found, err := get(ctx, w, d.Namespace, d.Spec.TaskName, t)
	if err != nil || !found || t.Annotations[v1alpha1.AnnotationGatewayEvent] != d.Spec.EventID {
		return err
	}
	content := map[string]any{
		"deliveryId": d.Name, "eventId": d.Spec.EventID, "gateway": d.Spec.GatewayName, "kind": string(d.Spec.Kind), "attempts": d.Status.AttemptCount,
	}
	if d.Status.ProviderMessageID != "" {
		content["providerMessageId"] = d.Status.ProviderMessageID
	}
	e := event.New(v1alpha1.EventGatewayDeliveryCompleted, v1alpha1.SeverityInfo, keyDelivered+d.Name, "delivered by the Gateway "+d.Spec.GatewayName, content)
	e.StreamType, e.StreamID, e.TaskName, e.AgentName = v1alpha1.StreamTask, t.Name, t.Name, t.Status.AgentName
	if err := w.appendEvent(ctx, t.Namespace, t.Name, *e); err != nil && !refusedForGood(err) {
		return err
	}
	if d.Spec.Kind == v1alpha1.GatewayDeliveryInterim {
		return nil
	}
	before := t.DeepCopy()
	metav1.SetMetaDataAnnotation(&t.ObjectMeta, v1alpha1.AnnotationGatewayDelivery, d.Name)
	if id := d.Status.ProviderMessageID; id != "" {
		metav1.SetMetaDataAnnotation(&t.ObjectMeta, v1alpha1.AnnotationGatewayMessage, id)
	}
	if maps.Equal(before.Annotations, t.Annotations) {
		return nil
	}
	if err := client.IgnoreNotFound(w.Patch(ctx, t, client.MergeFrom(before))); err != nil && !refusedForGood(err) {
		return fmt.Errorf("task %s: %w", t.Name, err)
	}
	return nil
}
