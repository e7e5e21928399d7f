// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package gateway

import (
	"context"
	"fmt"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/duration"
	"k8s.io/klog/v2"

	"github.com/platform-ai/platform/pkg/apis/core/v1alpha1"
	"github.com/platform-ai/platform/pkg/clip"
	"github.com/platform-ai/platform/pkg/server/registry/resource"
)

// States of deliveries, as the ledger has them.
const (
	deliveryPending        = string(v1alpha1.GatewayDeliveryPending)
	deliverySending        = string(v1alpha1.GatewayDeliverySending)
	deliveryRetryScheduled = string(v1alpha1.GatewayDeliveryRetryScheduled)
	deliveryDelivered      = string(v1alpha1.GatewayDeliveryDelivered)
	deliveryFailed         = string(v1alpha1.GatewayDeliveryFailed)
	deliveryDeadLettered   = string(v1alpha1.GatewayDeliveryDeadLettered)
	deliveryExpired        = string(v1alpha1.GatewayDeliveryExpired)
)

// Subresources by which people step in.
const (
	subRetry   = "retry"
	subAbandon = "abandon"
)

// Limits of the status, in bytes.
const (
	maxLastError = 1024
	maxRetriedBy = 512
)

// deliveryStates are the states of deliveries. Only people bring about Failed: the platform gives up into DeadLettered or Expired.
func deliveryStates() resource.States {
	return resource.States{
		Initial: []string{deliveryPending},
		Held:    []string{deliverySending},
		Ended:   []string{deliveryDelivered, deliveryFailed, deliveryDeadLettered, deliveryExpired},
		Table: []resource.Transition{
			{From: deliveryPending, To: deliverySending},
			{From: deliveryPending, To: deliveryExpired},
			{From: deliveryPending, To: deliveryDeadLettered}, // its gateway is gone
			{From: deliverySending, To: deliveryDelivered},
			{From: deliverySending, To: deliveryRetryScheduled},
			{From: deliverySending, To: deliveryDeadLettered},
			{From: deliverySending, To: deliveryExpired},
			{From: deliverySending, To: deliverySending}, // adapters recognise what was sent before
			{From: deliveryRetryScheduled, To: deliverySending},
			{From: deliveryRetryScheduled, To: deliveryExpired},
			{From: deliveryRetryScheduled, To: deliveryDeadLettered},
			{From: deliveryDeadLettered, To: deliveryPending, Via: subRetry},
			{From: deliveryFailed, To: deliveryPending, Via: subRetry},
			{From: deliveryPending, To: deliveryFailed, Via: subAbandon},
			{From: deliveryRetryScheduled, To: deliveryFailed, Via: subAbandon},
		},
	}
}

// deliveries returns the resource gatewaydeliveries.
func (o *Options) deliveries() resource.Resource {
	body := func() runtime.Object { return &v1alpha1.GatewayDelivery{} }
	return &resource.Definition[*v1alpha1.GatewayDelivery]{
		Resource:   v1alpha1.SchemeGroupVersion.WithResource("gatewaydeliveries"),
		Kind:       "GatewayDelivery",
		Singular:   "gatewaydelivery",
		ShortNames: []string{"gwd"},
		Categories: []string{categoryRecord},
		Roles:      records(),
		Scopes:     operated(subRetry, subAbandon),
		Stored:     o.Stored.Deliveries,
		Fields: append(recordFields(deliveryFacts),
			resource.Field[*v1alpha1.GatewayDelivery]{Path: FieldDeliveryBinding, Indexed: true, Value: func(d *v1alpha1.GatewayDelivery) string { return d.Spec.BindingName }},
			resource.Field[*v1alpha1.GatewayDelivery]{Path: FieldDeliverySession, Indexed: true, Value: func(d *v1alpha1.GatewayDelivery) string { return d.Spec.SessionName }},
			resource.Field[*v1alpha1.GatewayDelivery]{Path: FieldDeliveryTask, Indexed: true, Value: func(d *v1alpha1.GatewayDelivery) string { return d.Spec.TaskName }},
			resource.Field[*v1alpha1.GatewayDelivery]{Path: "taskName", Value: func(d *v1alpha1.GatewayDelivery) string { return d.Spec.TaskName }}, // as in all kinds
			resource.Field[*v1alpha1.GatewayDelivery]{Path: FieldDeliveryEvent, Indexed: true, Value: func(d *v1alpha1.GatewayDelivery) string { return d.Spec.EventID }},
		),
		Columns: o.deliveryColumns(),
		Shape: resource.StateLedger[*v1alpha1.GatewayDelivery]{
			Kept: resource.Kept[*v1alpha1.GatewayDelivery]{
				PrepareForCreate: func(ctx context.Context, d *v1alpha1.GatewayDelivery) { o.begin(ctx, d) },
				PrepareForStatus: func(_ context.Context, d, old *v1alpha1.GatewayDelivery) {
					if d.Status.State != old.Status.State {
						now := o.now()
						d.Status.UpdatedAt = &now
					}
				},
			},
			States: deliveryStates(),
			Entry: func(d *v1alpha1.GatewayDelivery) resource.Entry {
				s := &d.Status
				return resource.Entry{State: string(s.State), Next: due(s.NextAttemptAt), Holder: s.LeaseHolder, Until: due(s.LeaseUntil)}
			},
			Retention: o.Retention,
		},
		Subresources: []resource.Subresource[*v1alpha1.GatewayDelivery]{
			{Name: subRetry, New: body, Creators: []resource.Role{resource.Operator}, Create: o.retry},
			{Name: subAbandon, New: body, Creators: []resource.Role{resource.Operator}, Create: o.abandon},
			{Name: "send", New: body, Create: o.send},
		},
	}
}

func (o *Options) deliveryColumns() []resource.Column[*v1alpha1.GatewayDelivery] {
	return []resource.Column[*v1alpha1.GatewayDelivery]{
		{Name: "Gateway", Description: "The gateway.", Value: func(d *v1alpha1.GatewayDelivery) any { return d.Spec.GatewayName }},
		{Name: "Kind", Description: "What it says.", Value: func(d *v1alpha1.GatewayDelivery) any { return string(d.Spec.Kind) }},
		{Name: "State", Description: "How far it got.", Value: func(d *v1alpha1.GatewayDelivery) any { return string(d.Status.State) }},
		{Name: "Attempts", Type: "integer", Description: "How often something was sent, or may have been.", Value: func(d *v1alpha1.GatewayDelivery) any { return int64(d.Status.AttemptCount) }},
		{Name: "Outcome Unknown", Type: "boolean", Description: "Whether it was sent and no answer came, so that it may have been posted.", Value: func(d *v1alpha1.GatewayDelivery) any { return d.Status.OutcomeUnknown }},
		{Name: "Next", Description: "When it is sent.", Value: o.next},
		{Name: "Event", Wide: true, Description: "The event that is answered.", Value: func(d *v1alpha1.GatewayDelivery) any { return d.Spec.EventID }},
		{Name: "Last Error", Wide: true, Description: "Why the last attempt failed.", Value: func(d *v1alpha1.GatewayDelivery) any { return d.Status.LastError }},
	}
}

// next returns how long it is until a delivery is sent.
func (o *Options) next(d *v1alpha1.GatewayDelivery) any {
	at := d.Status.NextAttemptAt
	if at == nil || d.Status.State != v1alpha1.GatewayDeliveryPending && d.Status.State != v1alpha1.GatewayDeliveryRetryScheduled {
		return ""
	}
	wait := at.Sub(o.Clock.Now())
	if wait <= 0 {
		return "now"
	}
	return "in " + duration.HumanDuration(wait)
}

// deliveryEnded are the states in which nothing is left to do about a delivery.
var deliveryEnded = deliveryStates().Ended

func deliveryFacts(d *v1alpha1.GatewayDelivery) facts {
	state := string(d.Status.State)
	return facts{
		gateway: d.Spec.GatewayName, binding: d.Spec.BindingName, session: d.Spec.SessionName, task: d.Spec.TaskName, event: d.Spec.EventID, state: state,
		created: d.Spec.CreatedAt.Time, open: state != "" && !slices.Contains(deliveryEnded, state),
		unrecorded: d.Status.State == v1alpha1.GatewayDeliveryDelivered && !d.Status.Recorded,
	}
}

// begin completes a new delivery.
func (o *Options) begin(ctx context.Context, d *v1alpha1.GatewayDelivery) {
	now := o.now()
	if d.Spec.Kind == v1alpha1.GatewayDeliveryInterim {
		n, err := o.Stored.said(d.Spec.EventID)
		if err != nil { // the time decides between those of one place
			klog.FromContext(ctx).Error(err, "The texts of an event of a gateway are not counted", "event", d.Spec.EventID)
		}
		d.Spec.Part = int32(n) + 1
	}
	if d.Spec.CreatedAt.IsZero() {
		d.Spec.CreatedAt = now
	}
	if d.Spec.MaxAttempts <= 0 {
		d.Spec.MaxAttempts = o.MaxAttempts
	}
	d.Status = v1alpha1.GatewayDeliveryStatus{State: v1alpha1.GatewayDeliveryPending, NextAttemptAt: o.soon(0), ExpiresAt: o.soon(o.Expiry), UpdatedAt: &now}
}

// retry serves POST of retry. That the adapter may have posted the text already stays known.
func (o *Options) retry(ctx context.Context, p resource.Parent[*v1alpha1.GatewayDelivery], _ runtime.Object) (runtime.Object, error) {
	return o.stepIn(ctx, p, []v1alpha1.GatewayDeliveryState{v1alpha1.GatewayDeliveryDeadLettered, v1alpha1.GatewayDeliveryFailed}, func(s *v1alpha1.GatewayDeliveryStatus, by string) {
		*s = v1alpha1.GatewayDeliveryStatus{
			State: v1alpha1.GatewayDeliveryPending, NextAttemptAt: o.soon(0), ExpiresAt: o.soon(o.Expiry),
			ManualRetryCount: s.ManualRetryCount + 1, RetriedBy: clip.Text(by, maxRetriedBy), OutcomeUnknown: s.OutcomeUnknown, UpdatedAt: s.UpdatedAt,
		}
	})
}

// abandon serves POST of abandon.
func (o *Options) abandon(ctx context.Context, p resource.Parent[*v1alpha1.GatewayDelivery], _ runtime.Object) (runtime.Object, error) {
	return o.stepIn(ctx, p, []v1alpha1.GatewayDeliveryState{v1alpha1.GatewayDeliveryPending, v1alpha1.GatewayDeliveryRetryScheduled}, func(s *v1alpha1.GatewayDeliveryStatus, by string) {
		why := "given up by " + by
		if s.LastError != "" {
			why += "; before that: " + s.LastError
		}
		s.State, s.Reason, s.NextAttemptAt, s.LastError = v1alpha1.GatewayDeliveryFailed, v1alpha1.ReasonGatewayAbandoned, nil, clip.Text(why, maxLastError)
	})
}

// stepIn changes a delivery for a person who may operate its gateway, if it is in one of the states.
func (o *Options) stepIn(ctx context.Context, p resource.Parent[*v1alpha1.GatewayDelivery], in []v1alpha1.GatewayDeliveryState, change func(s *v1alpha1.GatewayDeliveryStatus, by string)) (runtime.Object, error) {
	by, err := callerOf(ctx)
	if err != nil {
		return nil, err
	}
	if err := o.mayOperate(ctx, p.Object.Namespace, p.Object.Spec.GatewayName); err != nil {
		return nil, err
	}
	return p.Update(ctx, func(d *v1alpha1.GatewayDelivery) error {
		if !slices.Contains(in, d.Status.State) {
			return apierrors.NewConflict(v1alpha1.Resource("gatewaydeliveries"), d.Name, fmt.Errorf("its state is %s; it must be %s or %s", d.Status.State, in[0], in[1]))
		}
		change(&d.Status, by)
		return nil
	})
}

// send serves POST of send, for controllers.
func (o *Options) send(ctx context.Context, p resource.Parent[*v1alpha1.GatewayDelivery], _ runtime.Object) (runtime.Object, error) {
	if o.Send == nil {
		return nil, unavailable()
	}
	if p.DryRun {
		return p.Object.DeepCopy(), nil
	}
	return o.Send(ctx, p.Object)
}
