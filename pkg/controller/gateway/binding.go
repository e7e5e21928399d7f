// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package gateway

import (
	"cmp"
	"context"
	"fmt"
	"reflect"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
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

func (w *world) addBindings(mgr manager.Manager) error {
	return builder.ControllerManagedBy(mgr).Named("gatewaybinding").For(&v1alpha1.GatewayBinding{}).WithOptions(options(parallel)).
		Watches(&v1alpha1.Gateway{}, handler.EnqueueRequestsFromMapFunc(w.bindingsBy(ofGateway)), builder.WithPredicates(whenChanged(func(g *v1alpha1.Gateway) any {
			s := g.Status
			return []any{g.Generation, s.Ready, s.Message, s.ObservedCapabilities}
		}))).
		Watches(&v1alpha1.GatewayClass{}, handler.EnqueueRequestsFromMapFunc(w.bindingsOfClass), builder.WithPredicates(predicate.GenerationChangedPredicate{})).
		Watches(&v1alpha1.Agent{}, handler.EnqueueRequestsFromMapFunc(w.bindingsBy(ofAgent)), builder.WithPredicates(whenChanged(func(a *v1alpha1.Agent) any { return isReady(a) }))).
		// Another binding may be for the same events.
		Watches(&v1alpha1.GatewayBinding{}, handler.EnqueueRequestsFromMapFunc(w.bindingsBeside), builder.WithPredicates(predicate.GenerationChangedPredicate{})).
		Complete(&step.Reconciler[*v1alpha1.GatewayBinding]{
			Client: mgr.GetClient(), New: func() *v1alpha1.GatewayBinding { return &v1alpha1.GatewayBinding{} },
			Steps: []step.Step[*v1alpha1.GatewayBinding]{{Name: "judge", Do: w.judgeBinding}},
		})
}

// whenChanged lets an update pass if what a function returns has changed, and whatever else happens to an object.
func whenChanged[T client.Object](of func(T) any) predicate.Predicate {
	return predicate.Funcs{UpdateFunc: func(e event.UpdateEvent) bool {
		was, ok := e.ObjectOld.(T)
		is, same := e.ObjectNew.(T)
		return !ok || !same || was.GetUID() != is.GetUID() || !reflect.DeepEqual(of(was), of(is))
	}}
}

// isReady reports whether an Agent can answer.
func isReady(a *v1alpha1.Agent) bool {
	return a.DeletionTimestamp == nil && meta.IsStatusConditionTrue(a.Status.Conditions, v1alpha1.ConditionReady)
}

// bindingsBy returns what wakes the bindings that name an object.
func (w *world) bindingsBy(index string) handler.MapFunc {
	return func(ctx context.Context, o client.Object) []reconcile.Request {
		return w.bindings(ctx, o.GetNamespace(), index, o.GetName())
	}
}

func (w *world) bindingsOfClass(ctx context.Context, o client.Object) []reconcile.Request {
	var all []reconcile.Request
	for _, g := range w.gatewaysOfClass(ctx, o) {
		all = append(all, w.bindings(ctx, g.Namespace, ofGateway, g.Name)...)
	}
	return all
}

func (w *world) bindingsBeside(ctx context.Context, o client.Object) []reconcile.Request {
	b, ok := o.(*v1alpha1.GatewayBinding)
	if !ok {
		return nil
	}
	return w.bindings(ctx, b.Namespace, ofGateway, b.Spec.GatewayRef.Name)
}

func (w *world) bindings(ctx context.Context, namespace, index, name string) []reconcile.Request {
	var list v1alpha1.GatewayBindingList
	if err := w.List(ctx, &list, client.InNamespace(namespace), client.MatchingFields{index: name}, client.UnsafeDisableDeepCopy); err != nil {
		return nil // the cache has ended
	}
	return requests(list.Items, func(b *v1alpha1.GatewayBinding) types.NamespacedName { return client.ObjectKeyFromObject(b) })
}

// around is what a binding depends on. What does not exist is nil.
type around struct {
	gateway *v1alpha1.Gateway
	class   *v1alpha1.GatewayClass
	agent   *v1alpha1.Agent
	// others are the bindings of the same gateway.
	others []v1alpha1.GatewayBinding
}

// judgeBinding says whether events are routed by a binding, and answered.
func (w *world) judgeBinding(ctx context.Context, b *v1alpha1.GatewayBinding) error {
	if b.DeletionTimestamp != nil {
		return step.ErrDone
	}
	a := around{gateway: &v1alpha1.Gateway{}, class: &v1alpha1.GatewayClass{}, agent: &v1alpha1.Agent{}}
	found, err := get(ctx, w, b.Namespace, b.Spec.GatewayRef.Name, a.gateway)
	if err != nil {
		return fmt.Errorf("read the gateway: %w", err)
	}
	if !found {
		a.gateway, a.class = nil, nil
	} else if found, err = get(ctx, w, "", a.gateway.Spec.GatewayClassName, a.class); err != nil {
		return fmt.Errorf("class: %w", err)
	} else if !found {
		a.class = nil
	}
	if found, err = get(ctx, w, b.Namespace, b.Spec.AgentRef.Name, a.agent); err != nil {
		return fmt.Errorf("agent: %w", err)
	} else if !found {
		a.agent = nil
	}
	var list v1alpha1.GatewayBindingList
	err = w.List(ctx, &list, client.InNamespace(b.Namespace), client.MatchingFields{ofGateway: b.Spec.GatewayRef.Name}, client.UnsafeDisableDeepCopy)
	if err != nil {
		return fmt.Errorf("bindings: %w", err)
	}
	a.others = list.Items
	judge(b, a)
	return nil
}

// judge sets the status of a binding.
func judge(b *v1alpha1.GatewayBinding, a around) {
	s := &b.Status
	accepted := ""
	if b.Spec.Session.Mode == v1alpha1.GatewaySessionExplicit && b.Spec.Session.Name == "" {
		accepted = "spec.session.name: is required with the mode explicit"
	}
	resolved := ""
	switch {
	case a.gateway == nil:
		resolved = fmt.Sprintf("spec.gatewayRef: the Gateway %s does not exist", b.Spec.GatewayRef.Name)
	case a.agent == nil:
		resolved = fmt.Sprintf("spec.agentRef: the Agent %s does not exist", b.Spec.AgentRef.Name)
	}
	s.ResolvedCapabilities = capabilities(a)
	programmed := unprogrammed(b, a, s.ResolvedCapabilities)
	ready := cmp.Or(accepted, resolved, programmed)
	if ready == "" {
		switch {
		case !a.gateway.Status.Ready || a.gateway.Status.ObservedGeneration != a.gateway.Generation:
			ready = fmt.Sprintf("the Gateway %s is not ready: %s", a.gateway.Name, cmp.Or(a.gateway.Status.Message, "it was not probed yet"))
		case !isReady(a.agent):
			ready = fmt.Sprintf("the Agent %s is not ready", a.agent.Name)
		}
	}
	s.Accepted, s.ResolvedRefs, s.Programmed, s.Ready = accepted == "", resolved == "", programmed == "", ready == ""
	s.ObservedGeneration, s.Message = b.Generation, brief(ready)
	set(&s.Conditions, b.Generation,
		judgment{v1alpha1.ConditionAccepted, s.Accepted, v1alpha1.ReasonValidationSucceeded, v1alpha1.ReasonValidationFailed, brief(accepted)},
		judgment{v1alpha1.ConditionResolvedRefs, s.ResolvedRefs, v1alpha1.ReasonReferencesResolved, v1alpha1.ReasonReferencesNotResolved, brief(resolved)},
		judgment{v1alpha1.ConditionProgrammed, s.Programmed, v1alpha1.ReasonProgrammed, v1alpha1.ReasonAmbiguousOrUnsupported, brief(programmed)},
		judgment{v1alpha1.ConditionReady, s.Ready, v1alpha1.ReasonReady, v1alpha1.ReasonNotReady, s.Message},
	)
}

// unprogrammed returns why no events are routed by a binding; empty if they are.
func unprogrammed(b *v1alpha1.GatewayBinding, a around, can *v1alpha1.GatewayCapabilities) string {
	for i := range a.others {
		o := &a.others[i]
		if o.UID != b.UID && o.DeletionTimestamp == nil && gateway.Same(o, b) {
			return fmt.Sprintf("the GatewayBinding %s is for the same events with the same priority: give one of them another priority", o.Name)
		}
	}
	if a.gateway == nil {
		return fmt.Sprintf("the Gateway %s does not exist", b.Spec.GatewayRef.Name)
	}
	if can == nil {
		return fmt.Sprintf("what the adapter of the Gateway %s can do is not known yet", a.gateway.Name)
	}
	if lacks := gateway.Lacks(b, can); lacks != "" {
		return fmt.Sprintf("the binding needs the capability %s, which the adapter of the Gateway %s or its class does not have", lacks, a.gateway.Name)
	}
	return ""
}

// capabilities returns what both the adapter of a gateway and its class can do; nil if that is not known.
func capabilities(a around) *v1alpha1.GatewayCapabilities {
	if a.gateway == nil || a.class == nil || a.gateway.Status.ObservedCapabilities == nil {
		return nil
	}
	of, has := a.class.Spec.Capabilities, a.gateway.Status.ObservedCapabilities.Capabilities
	return &v1alpha1.GatewayCapabilities{
		InboundText: of.InboundText && has.InboundText, OutboundText: of.OutboundText && has.OutboundText, Threads: of.Threads && has.Threads,
		SenderIdentity: of.SenderIdentity && has.SenderIdentity, ExplicitSessions: of.ExplicitSessions && has.ExplicitSessions,
		IdempotentDelivery: of.IdempotentDelivery && has.IdempotentDelivery, InterimMessages: of.InterimMessages && has.InterimMessages,
	}
}

// activityInterval is how often the activity of a binding is written down at most.
const activityInterval = time.Minute

// touch writes down that an event of a binding was dispatched, or that an answer was delivered. What cannot be written is written the next
// time.
func (w *world) touch(ctx context.Context, namespace, name string, uid types.UID, of func(*v1alpha1.GatewayBindingStatus) **metav1.Time) {
	b := &v1alpha1.GatewayBinding{}
	if found, err := get(ctx, w, namespace, name, b); err != nil || !found || uid != "" && b.UID != uid {
		return
	}
	before := b.DeepCopy()
	at := of(&b.Status)
	type activity struct {
		uid     types.UID
		inbound bool
	}
	is, now := activity{b.UID, at == &b.Status.LastInboundActivity}, w.now()
	if known, ok := w.touched.Get(is); ok {
		if last, ok := known.(time.Time); ok && now.Sub(last) < activityInterval {
			return
		}
	}
	if *at != nil && now.Sub((*at).Time) < activityInterval {
		return
	}
	w.touched.Add(is, now)
	t := metav1.NewTime(now).Rfc3339Copy()
	*at = &t
	if err := w.Status().Patch(ctx, b, client.MergeFrom(before)); err != nil {
		w.touched.Remove(is)
	}
}

func inbound(s *v1alpha1.GatewayBindingStatus) **metav1.Time  { return &s.LastInboundActivity }
func outbound(s *v1alpha1.GatewayBindingStatus) **metav1.Time { return &s.LastOutboundActivity }
