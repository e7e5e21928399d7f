// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package gateway

import (
	"context"
	"errors"
	"fmt"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/platform-ai/platform/pkg/apis/core/v1alpha1"
	"github.com/platform-ai/platform/pkg/server/registry/resource"
)

// States of events, as the ledger has them.
const (
	eventQueued       = string(v1alpha1.GatewayEventQueued)
	eventDispatching  = string(v1alpha1.GatewayEventDispatching)
	eventTaskCreated  = string(v1alpha1.GatewayEventTaskCreated)
	eventCompleted    = string(v1alpha1.GatewayEventCompleted)
	eventRejected     = string(v1alpha1.GatewayEventRejected)
	eventDeadLettered = string(v1alpha1.GatewayEventDeadLettered)
	eventExpired      = string(v1alpha1.GatewayEventExpired)
)

// subReplay is the subresource by which people have an event routed again.
const subReplay = "replay"

// eventStates are the states of events. One that decides on an approval has no task: it is completed or rejected when it is decided. What expired although nobody can be told
// is dead-lettered instead.
func eventStates() resource.States {
	return resource.States{
		Initial: []string{eventQueued, eventRejected, eventDeadLettered, eventCompleted},
		Held:    []string{eventDispatching},
		Ended:   []string{eventCompleted, eventRejected, eventDeadLettered, eventExpired},
		Table: []resource.Transition{
			{From: eventQueued, To: eventDispatching},
			{From: eventQueued, To: eventExpired},
			{From: eventQueued, To: eventDeadLettered}, // its gateway is gone
			{From: eventQueued, To: eventRejected},     // its binding is gone
			{From: eventQueued, To: eventCompleted},
			{From: eventDispatching, To: eventTaskCreated},
			{From: eventDispatching, To: eventQueued}, // an obstacle
			{From: eventDispatching, To: eventExpired},
			{From: eventDispatching, To: eventDeadLettered},
			{From: eventDispatching, To: eventDispatching}, // the task has a name of its own, so it is made once
			{From: eventTaskCreated, To: eventCompleted},
			{From: eventTaskCreated, To: eventExpired}, // the task was deleted
			{From: eventTaskCreated, To: eventDeadLettered},
			{From: eventRejected, To: eventQueued, Via: subReplay},
			{From: eventRejected, To: eventDeadLettered, Via: subReplay},
			{From: eventDeadLettered, To: eventQueued, Via: subReplay},
			{From: eventDeadLettered, To: eventRejected, Via: subReplay},
			{From: eventExpired, To: eventQueued, Via: subReplay},
			{From: eventExpired, To: eventRejected, Via: subReplay},
			{From: eventExpired, To: eventDeadLettered, Via: subReplay},
		},
	}
}

// events returns the resource gatewayevents.
func (o *Options) events() resource.Resource {
	return &resource.Definition[*v1alpha1.GatewayEvent]{
		Resource:   v1alpha1.SchemeGroupVersion.WithResource("gatewayevents"),
		Kind:       "GatewayEvent",
		Singular:   "gatewayevent",
		ShortNames: []string{"gwe"},
		Categories: []string{categoryRecord},
		Roles:      records(),
		Scopes:     operated(subReplay),
		Stored:     o.Stored.Events,
		Fields: append(recordFields(eventFacts),
			resource.Field[*v1alpha1.GatewayEvent]{Path: FieldEventBinding, Indexed: true, Value: func(e *v1alpha1.GatewayEvent) string { return e.Status.BindingName }},
			resource.Field[*v1alpha1.GatewayEvent]{Path: FieldEventSession, Indexed: true, Value: func(e *v1alpha1.GatewayEvent) string { return e.Status.SessionName }},
			resource.Field[*v1alpha1.GatewayEvent]{Path: FieldEventTask, Indexed: true, Value: func(e *v1alpha1.GatewayEvent) string { return e.Status.TaskName }},
			resource.Field[*v1alpha1.GatewayEvent]{Path: "taskName", Value: func(e *v1alpha1.GatewayEvent) string { return e.Status.TaskName }}, // as in all kinds
			resource.Field[*v1alpha1.GatewayEvent]{Path: FieldOpenGateway, Indexed: true, Value: func(e *v1alpha1.GatewayEvent) string {
				if eventFacts(e).open {
					return OfGateway(e.Namespace, e.Spec.GatewayName)
				}
				return ""
			}},
			resource.Field[*v1alpha1.GatewayEvent]{Path: FieldRejected, Indexed: true, Value: func(e *v1alpha1.GatewayEvent) string {
				if e.Status.State == v1alpha1.GatewayEventRejected {
					return OfGateway(e.Namespace, e.Spec.GatewayName) + "/" + oldest(e.Spec.CreatedAt.Time)
				}
				return ""
			}},
		),
		Columns: []resource.Column[*v1alpha1.GatewayEvent]{
			{Name: "Gateway", Description: "The gateway.", Value: func(e *v1alpha1.GatewayEvent) any { return e.Spec.GatewayName }},
			{Name: "Sender", Description: "Who wrote.", Value: func(e *v1alpha1.GatewayEvent) any { return e.Spec.SenderID }},
			{Name: "State", Description: "What became of it.", Value: func(e *v1alpha1.GatewayEvent) any { return string(e.Status.State) }},
			{Name: "Reason", Description: "Why.", Value: func(e *v1alpha1.GatewayEvent) any { return e.Status.Reason }},
			{Name: "Task", Description: "The task that answers.", Value: func(e *v1alpha1.GatewayEvent) any { return e.Status.TaskName }},
			{Name: "Session", Wide: true, Description: "The session that has what the sender wrote.", Value: func(e *v1alpha1.GatewayEvent) any { return e.Status.SessionName }},
			{Name: "Message", Wide: true, Description: "Why, in a sentence.", Value: func(e *v1alpha1.GatewayEvent) any { return e.Status.StateMessage }},
		},
		Shape: resource.StateLedger[*v1alpha1.GatewayEvent]{
			Kept: resource.Kept[*v1alpha1.GatewayEvent]{
				PrepareForCreate: func(_ context.Context, e *v1alpha1.GatewayEvent) { o.unrouted(e) },
				PrepareForStatus: func(_ context.Context, e, old *v1alpha1.GatewayEvent) { o.moved(e, old) },
			},
			States: eventStates(),
			Entry: func(e *v1alpha1.GatewayEvent) resource.Entry {
				s := &e.Status
				return resource.Entry{State: string(s.State), Next: due(s.NextAttemptAt), Holder: s.LeaseHolder, Until: due(s.LeaseUntil)}
			},
			Retention: o.Retention,
		},
		Subresources: []resource.Subresource[*v1alpha1.GatewayEvent]{
			{Name: subReplay, New: func() runtime.Object { return &v1alpha1.GatewayEvent{} }, Creators: []resource.Role{resource.Operator}, Create: o.replay},
			{Name: "decide", New: func() runtime.Object { return &v1alpha1.GatewayEvent{} }, Create: o.decide},
		},
	}
}

func eventFacts(e *v1alpha1.GatewayEvent) facts {
	state := string(e.Status.State)
	return facts{
		gateway: e.Spec.GatewayName, binding: e.Status.BindingName, session: e.Status.SessionName, task: e.Status.TaskName, state: state,
		created: e.Spec.CreatedAt.Time, open: state != "" && !slices.Contains(eventEnded, state),
	}
}

// eventEnded are the states in which nothing is left to do about an event.
var eventEnded = eventStates().Ended

// unrouted sets the status of an event that somebody creates by this API. Events of adapters are stored by the door instead, with their place
// in a session. Without such a place an event must not be dispatched, but it can be replayed.
func (o *Options) unrouted(e *v1alpha1.GatewayEvent) {
	now := o.now()
	if e.Spec.CreatedAt.IsZero() {
		e.Spec.CreatedAt = now
	}
	e.Status = v1alpha1.GatewayEventStatus{
		State: v1alpha1.GatewayEventRejected, StateMessage: "it did not come from an adapter; replay it to have it routed", UpdatedAt: &now, CompletedAt: &now,
	}
}

// moved records when the state changes, and when nothing is left to do.
func (o *Options) moved(e, old *v1alpha1.GatewayEvent) {
	if e.Status.State == old.Status.State {
		return
	}
	now := o.now()
	e.Status.UpdatedAt = &now
	switch ended := slices.Contains(eventEnded, string(e.Status.State)); {
	case !ended:
		e.Status.CompletedAt = nil
	case e.Status.CompletedAt == nil:
		e.Status.CompletedAt = &now
	}
}

// replay serves POST of replay.
func (o *Options) replay(ctx context.Context, p resource.Parent[*v1alpha1.GatewayEvent], _ runtime.Object) (runtime.Object, error) {
	e := p.Object
	by, err := callerOf(ctx)
	if err != nil {
		return nil, err
	}
	if err := o.mayOperate(ctx, e.Namespace, e.Spec.GatewayName); err != nil {
		return nil, err
	}
	switch e.Status.State {
	case v1alpha1.GatewayEventRejected, v1alpha1.GatewayEventDeadLettered, v1alpha1.GatewayEventExpired:
	default:
		return nil, apierrors.NewConflict(v1alpha1.Resource("gatewayevents"), e.Name, fmt.Errorf(
			"its state is %s; only events that are Rejected, DeadLettered or Expired are replayed", e.Status.State))
	}
	if o.Replay == nil {
		return nil, unavailable()
	}
	if p.DryRun {
		return e.DeepCopy(), nil
	}
	return o.Replay(ctx, e, by)
}

// decide serves POST of decide, for controllers.
func (o *Options) decide(ctx context.Context, p resource.Parent[*v1alpha1.GatewayEvent], _ runtime.Object) (runtime.Object, error) {
	e := p.Object
	switch {
	case e.Status.Decision == nil:
		return nil, apierrors.NewConflict(v1alpha1.Resource("gatewayevents"), e.Name, errors.New("it does not decide on an approval"))
	case e.Status.State != v1alpha1.GatewayEventQueued:
		return nil, apierrors.NewConflict(v1alpha1.Resource("gatewayevents"), e.Name, fmt.Errorf("its state is %s, not %s", e.Status.State, v1alpha1.GatewayEventQueued))
	case o.Decide == nil:
		return nil, unavailable()
	case p.DryRun:
		return e.DeepCopy(), nil
	}
	return o.Decide(ctx, e)
}
