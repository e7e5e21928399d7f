// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package gateway

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/platform-ai/platform/pkg/apis/core/v1alpha1"
	"github.com/platform-ai/platform/pkg/controller/step"
	"github.com/platform-ai/platform/pkg/gateway"
)

func (w *world) addSessions(mgr manager.Manager) error {
	d := &dispatcher{world: w}
	return builder.ControllerManagedBy(mgr).Named("gatewaysession").WithOptions(options(w.o.BatchSize)).
		Watches(&v1alpha1.GatewayEvent{}, handler.EnqueueRequestsFromMapFunc(toSession)).
		Watches(&v1alpha1.Task{}, handler.EnqueueRequestsFromMapFunc(toSession), builder.WithPredicates(taskOver)).
		Watches(&v1alpha1.Approval{}, handler.EnqueueRequestsFromMapFunc(w.waitsOrDecided)).
		Watches(&v1alpha1.GatewayBinding{}, d.hints.then(w.eventsOf(ofBinding)), builder.WithPredicates(whenReady(func(b *v1alpha1.GatewayBinding) bool { return b.Status.Ready }))).
		Watches(&v1alpha1.Gateway{}, d.hints.then(w.eventsOf(ofGateway)), builder.WithPredicates(comesOrGoes)).
		Complete(d)
}

// toSession wakes the session of an event, or of a task that answers one.
func toSession(_ context.Context, o client.Object) []reconcile.Request {
	name := ""
	switch o := o.(type) {
	case *v1alpha1.GatewayEvent:
		name = o.Status.SessionName
	case *v1alpha1.GatewayDelivery:
		name = o.Spec.SessionName
	case *v1alpha1.Task:
		if o.Annotations[v1alpha1.AnnotationGatewayEvent] != "" && o.Spec.SessionRef != nil {
			name = o.Spec.SessionRef.Name
		}
	}
	if name == "" {
		return nil
	}
	return []reconcile.Request{{NamespacedName: types.NamespacedName{Namespace: o.GetNamespace(), Name: name}}}
}

// taskOver lets tasks pass that have ended or are gone.
var taskOver = func() predicate.Funcs {
	over := func(o client.Object) bool {
		t, ok := o.(*v1alpha1.Task)
		return ok && t.Status.Phase.Terminal()
	}
	return predicate.Funcs{
		CreateFunc: func(e event.CreateEvent) bool { return over(e.Object) },
		UpdateFunc: func(e event.UpdateEvent) bool { return over(e.ObjectNew) && !over(e.ObjectOld) },
	}
}()

// comesOrGoes lets objects pass that were made or deleted.
var comesOrGoes = predicate.Funcs{UpdateFunc: func(e event.UpdateEvent) bool { return e.ObjectOld.GetUID() != e.ObjectNew.GetUID() }}

// whenReady lets objects pass that have become ready, and those that are gone.
func whenReady[T client.Object](ready func(T) bool) predicate.Funcs {
	is := func(o client.Object) bool {
		t, ok := o.(T)
		return ok && ready(t)
	}
	return predicate.Funcs{
		CreateFunc: func(e event.CreateEvent) bool { return is(e.Object) },
		UpdateFunc: func(e event.UpdateEvent) bool { return is(e.ObjectNew) && !is(e.ObjectOld) },
	}
}

// eventsOf returns the sessions with open events that name an object.
func (w *world) eventsOf(index string) handler.MapFunc {
	return func(ctx context.Context, o client.Object) []reconcile.Request {
		var list v1alpha1.GatewayEventList
		if err := w.List(ctx, &list, client.InNamespace(o.GetNamespace()), client.MatchingFields{index: o.GetName()}, client.UnsafeDisableDeepCopy); err != nil {
			return nil // the cache has ended
		}
		return requests(list.Items, func(e *v1alpha1.GatewayEvent) types.NamespacedName {
			return types.NamespacedName{Namespace: e.Namespace, Name: e.Status.SessionName}
		})
	}
}

// dispatcher works on the events of sessions.
type dispatcher struct {
	*world
	hints hints
}

// maintenance is when a session is looked at again whose task runs, in case that its end was not seen.
const maintenance = time.Minute

// Reconcile works on the events of a session as far as it goes now.
func (d *dispatcher) Reconcile(ctx context.Context, req reconcile.Request) (reconcile.Result, error) {
	var list v1alpha1.GatewayEventList
	err := d.List(ctx, &list, client.InNamespace(req.Namespace), client.MatchingFields{ofSession: req.Name}, client.UnsafeDisableDeepCopy)
	if err != nil {
		return reconcile.Result{}, fmt.Errorf("events: %w", err)
	}
	events := make([]*v1alpha1.GatewayEvent, 0, len(list.Items))
	for i := range list.Items {
		if d.outdated(&list.Items[i]) {
			return reconcile.Result{RequeueAfter: again}, nil
		}
		events = append(events, &list.Items[i])
	}
	m := moment{holder: d.o.Holder, hurried: d.hints.take(req.NamespacedName), expiry: d.o.EventExpiry}
	for {
		m.now = d.now()
		n := next(events, m)
		if n.do == idle {
			return reconcile.Result{}, nil
		}
		if n.do == pause {
			return reconcile.Result{RequeueAfter: max(n.at.Sub(m.now), time.Millisecond)}, nil
		}
		// What the cache has must not be changed.
		at := indexOf(events, n.event)
		events[at] = n.event.DeepCopy()
		if result, err := outcome(d.act(ctx, n.do, events[at])); result != nil || err != nil {
			if result == nil {
				result = &reconcile.Result{}
			}
			return *result, err
		}
		m.hurried = m.hurried && eventEnded(events[at]) // for those that waited because of it
	}
}

func indexOf[T comparable](all []T, of T) int {
	for i, x := range all {
		if x == of {
			return i
		}
	}
	return -1
}

// outcome returns how a reconcile ends after a step; nil if it goes on.
func outcome(err error) (*reconcile.Result, error) {
	if err == nil {
		return nil, nil //nolint:nilnil // it goes on
	}
	if w, ok := errors.AsType[step.Wait](err); ok {
		return &reconcile.Result{RequeueAfter: w.After}, nil
	}
	if apierrors.IsConflict(err) {
		return &reconcile.Result{RequeueAfter: conflictDelay}, nil
	}
	return nil, err
}

// conflictDelay gives the cache time to see the write that caused a conflict.
const conflictDelay = 50 * time.Millisecond

func (d *dispatcher) act(ctx context.Context, do action, e *v1alpha1.GatewayEvent) error {
	switch do {
	case expire:
		return d.expire(ctx, e)
	case follow:
		return d.follow(ctx, e)
	default:
		return d.dispatch(ctx, e)
	}
}

// route is by what an event is dispatched.
type route struct {
	binding *v1alpha1.GatewayBinding
	agent   *v1alpha1.Agent
	// gone is set if the gateway of the event does not exist any more.
	gone bool
	// obstacle is why the task cannot be made yet.
	obstacle string
}

// route finds out whether an event can be dispatched.
func (d *dispatcher) route(ctx context.Context, e *v1alpha1.GatewayEvent) (route, error) {
	gone, err := d.gatewayGone(ctx, e)
	if err != nil || gone {
		return route{gone: gone}, err
	}
	b := &v1alpha1.GatewayBinding{}
	found, err := get(ctx, d, e.Namespace, e.Status.BindingName, b)
	if err != nil {
		return route{}, fmt.Errorf("binding: %w", err)
	}
	switch {
	case !found || e.Status.BindingUID != "" && b.UID != e.Status.BindingUID:
		return route{obstacle: fmt.Sprintf("the GatewayBinding %s does not exist any more", e.Status.BindingName)}, nil
	case b.Status.ObservedGeneration != b.Generation:
		return route{obstacle: fmt.Sprintf("the GatewayBinding %s was not looked at yet", b.Name)}, nil
	case !b.Status.Ready:
		return route{obstacle: fmt.Sprintf("the GatewayBinding %s is not ready: %s", b.Name, b.Status.Message)}, nil
	}
	a := &v1alpha1.Agent{}
	if found, err = get(ctx, d, e.Namespace, b.Spec.AgentRef.Name, a); err != nil {
		return route{}, fmt.Errorf("agent: %w", err)
	}
	if !found {
		return route{obstacle: fmt.Sprintf("the Agent %s does not exist", b.Spec.AgentRef.Name)}, nil
	}
	return route{binding: b, agent: a}, nil
}

// gatewayGone reports whether the gateway of an event does not exist any more, or another one has its name. The cache may not have the
// gateway yet, so the server is asked before that is believed.
func (d *dispatcher) gatewayGone(ctx context.Context, e *v1alpha1.GatewayEvent) (bool, error) {
	for _, from := range []client.Reader{d, d.live} {
		g := &v1alpha1.Gateway{}
		found, err := get(ctx, from, e.Namespace, e.Spec.GatewayName, g)
		if err != nil {
			return false, fmt.Errorf("read the gateway: %w", err)
		}
		if found && g.UID == e.Spec.GatewayUID {
			return false, nil
		}
	}
	return true, nil
}

// dispatch makes the task of an event.
func (d *dispatcher) dispatch(ctx context.Context, e *v1alpha1.GatewayEvent) error {
	held := e.Status.State == v1alpha1.GatewayEventDispatching
	if held { // an earlier try was interrupted, and may have made the task
		t := &v1alpha1.Task{}
		found, err := get(ctx, d.live, e.Namespace, gateway.TaskName(e.UID, e.Status.Replays), t)
		switch {
		case err != nil:
			return fmt.Errorf("task: %w", err)
		case found && answers(t, e):
			return d.created(ctx, e, t)
		case !expiryOf(e, d.o.EventExpiry).After(d.now()):
			return d.expire(ctx, e)
		}
	}
	r, err := d.route(ctx, e)
	switch {
	case err != nil:
		return err
	case r.gone:
		return d.end(ctx, e, ending{state: v1alpha1.GatewayEventDeadLettered, reason: v1alpha1.ReasonGatewayGone, message: "the gateway was deleted, or another one has its name"})
	case r.obstacle != "":
		return d.delay(ctx, e, r.obstacle, 0)
	}
	if !held || e.Status.LeaseHolder != d.o.Holder || e.Status.LeaseUntil == nil || !e.Status.LeaseUntil.After(d.now()) {
		if err := d.claim(ctx, e); err != nil {
			return err
		}
	}
	t := taskOf(e, r.binding, r.agent, &d.o)
	made, err := d.makeTask(ctx, t)
	if apierrors.IsAlreadyExists(err) {
		made = &v1alpha1.Task{}
		if err = d.live.Get(ctx, client.ObjectKeyFromObject(t), made); err == nil && !answers(made, e) {
			return d.delay(ctx, e, "another task has the name "+t.Name, 0)
		}
	}
	switch {
	case err == nil:
		return d.created(ctx, e, made)
	case apierrors.IsInvalid(err), apierrors.IsBadRequest(err), apierrors.IsRequestEntityTooLargeError(err), denied(err):
		return d.refused(ctx, e, err)
	case apierrors.IsForbidden(err), apierrors.IsTooManyRequests(err), apierrors.IsNotFound(err):
		seconds, _ := apierrors.SuggestsClientDelay(err)
		return d.delay(ctx, e, err.Error(), time.Duration(seconds)*time.Second)
	}
	return fmt.Errorf("task: %w", err)
}

// denied reports whether an admission policy or a webhook refuses a task. That is said in words alone: a quota that is used up has the same
// code, and there will be room again.
func denied(err error) bool {
	return apierrors.IsForbidden(err) && (strings.Contains(err.Error(), "denied request") || strings.Contains(err.Error(), "denied the request"))
}

// claim takes the lease of an event.
func (d *dispatcher) claim(ctx context.Context, e *v1alpha1.GatewayEvent) error {
	return d.change(ctx, e, func(s *v1alpha1.GatewayEventStatus) {
		s.State, s.Reason, s.StateMessage, s.NextAttemptAt = v1alpha1.GatewayEventDispatching, "", "", nil
		s.LeaseHolder, s.LeaseUntil = d.o.Holder, whole(d.now().Add(d.o.ClaimLease))
	})
}

// created writes down that the task of an event exists.
func (d *dispatcher) created(ctx context.Context, e *v1alpha1.GatewayEvent, t *v1alpha1.Task) error {
	b, a := &v1alpha1.GatewayBinding{}, &v1alpha1.Agent{}
	if _, err := get(ctx, d, e.Namespace, e.Status.BindingName, b); err != nil {
		return fmt.Errorf("binding: %w", err)
	}
	if t.Spec.AgentRef != nil {
		a.Name = t.Spec.AgentRef.Name
		if _, err := get(ctx, d, e.Namespace, t.Spec.AgentRef.Name, a); err != nil {
			return fmt.Errorf("agent: %w", err)
		}
	}
	err := d.change(ctx, e, func(s *v1alpha1.GatewayEventStatus) {
		s.State, s.Reason, s.StateMessage, s.NextAttemptAt, s.LeaseHolder, s.LeaseUntil = v1alpha1.GatewayEventTaskCreated, "", "", nil, "", nil
		s.TaskName, s.TaskUID, s.AgentName, s.AgentUID = t.Name, t.UID, a.Name, a.UID
		if b.UID == s.BindingUID && b.Generation != 0 {
			s.BindingGeneration = b.Generation
		}
	})
	if err != nil {
		return err
	}
	d.counts.dispatched(resultCreated)
	d.counts.dispatchLatency.Observe(max(d.now().Sub(e.Spec.CreatedAt.Time), 0).Seconds())
	d.touch(ctx, e.Namespace, e.Status.BindingName, e.Status.BindingUID, inbound)
	return nil
}

// maxDelay is the longest time between two tries to make a task.
const maxDelay = 5 * time.Minute

// delay puts an event back whose task cannot be made yet.
func (d *dispatcher) delay(ctx context.Context, e *v1alpha1.GatewayEvent, why string, atLeast time.Duration) error {
	d.counts.dispatched(resultDelayed)
	return d.change(ctx, e, func(s *v1alpha1.GatewayEventStatus) {
		s.AttemptCount++
		s.State, s.Reason, s.StateMessage, s.LeaseHolder, s.LeaseUntil = v1alpha1.GatewayEventQueued, v1alpha1.ReasonGatewayObstacle, brief(why), "", nil
		s.NextAttemptAt = whole(d.now().Add(max(backoff(s.AttemptCount, maxDelay), min(atLeast, maxDelay))))
	})
}

// change changes the status of an event. If something else than its state changed meanwhile, such as how often it was delivered again, it is
// tried again with that.
func (d *dispatcher) change(ctx context.Context, e *v1alpha1.GatewayEvent, how func(*v1alpha1.GatewayEventStatus)) error {
	const tries = 5
	for i := 1; ; i++ {
		before := e.DeepCopy()
		how(&e.Status)
		e.Status.UpdatedAt = stamp(d.now())
		err := d.Status().Patch(ctx, e, client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{}))
		if err == nil {
			d.wrote(e)
			return nil
		}
		if !apierrors.IsConflict(err) || i == tries {
			return fmt.Errorf("event %s: %w", e.Name, err)
		}
		now := &v1alpha1.GatewayEvent{}
		if err := d.live.Get(ctx, client.ObjectKeyFromObject(e), now); err != nil {
			return fmt.Errorf("event %s: %w", e.Name, err)
		}
		d.wrote(now)
		if was := &before.Status; now.UID != e.UID || now.Status.State != was.State || now.Status.LeaseHolder != was.LeaseHolder || now.Status.Replays != was.Replays || !now.Status.LeaseUntil.Equal(was.LeaseUntil) {
			return fmt.Errorf("event %s: %w", e.Name, err)
		}
		*e = *now
	}
}
