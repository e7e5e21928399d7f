// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package gateway

import (
	"cmp"
	"context"
	"fmt"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/lru"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/platform-ai/platform/pkg/apis/core/v1alpha1"
	"github.com/platform-ai/platform/pkg/controller/step"
)

func (w *world) addGateways(mgr manager.Manager) error {
	p := &prober{world: w, last: lru.New(maxRemembered)}
	return builder.ControllerManagedBy(mgr).Named("gateway").For(&v1alpha1.Gateway{}).WithOptions(options(parallel)).
		Watches(&v1alpha1.GatewayClass{}, handler.EnqueueRequestsFromMapFunc(w.gatewaysOfClass)).
		Complete(&step.Reconciler[*v1alpha1.Gateway]{
			Client: mgr.GetClient(), New: func() *v1alpha1.Gateway { return &v1alpha1.Gateway{} },
			Steps: []step.Step[*v1alpha1.Gateway]{{Name: "probe", Do: p.do}},
		})
}

func (w *world) gatewaysOfClass(ctx context.Context, class client.Object) []reconcile.Request {
	var list v1alpha1.GatewayList
	if err := w.List(ctx, &list, client.MatchingFields{ofClass: class.GetName()}, client.UnsafeDisableDeepCopy); err != nil {
		return nil // they are probed again anyway
	}
	return requests(list.Items, func(g *v1alpha1.Gateway) types.NamespacedName { return client.ObjectKeyFromObject(g) })
}

// requests returns a request for each of the keys of objects, once.
func requests[T any](items []T, of func(*T) types.NamespacedName) []reconcile.Request {
	seen := map[types.NamespacedName]bool{}
	var all []reconcile.Request
	for i := range items {
		if at := of(&items[i]); at.Name != "" && !seen[at] {
			seen[at] = true
			all = append(all, reconcile.Request{NamespacedName: at})
		}
	}
	return all
}

// probeInterval is the time between two probes of a gateway that is ready, and the longest one of any gateway.
const probeInterval = time.Minute

// prober finds out whether gateways can be used.
type prober struct {
	*world
	// last has the last probe of each gateway, by its UID. After a start there is none, and each gateway is probed.
	last *lru.Cache
}

// probed is the last probe of a gateway.
type probed struct {
	// of is what was probed.
	of string
	at time.Time
	// failures is how many probes have failed since one succeeded.
	failures int32
}

// due returns when the gateway is probed again.
func (p probed) due() time.Time {
	if p.failures == 0 {
		return p.at.Add(probeInterval)
	}
	return p.at.Add(backoff(p.failures, probeInterval))
}

// do probes a gateway if that is due, and writes down what was found.
func (p *prober) do(ctx context.Context, g *v1alpha1.Gateway) error {
	if g.DeletionTimestamp != nil {
		return step.ErrDone
	}
	class := &v1alpha1.GatewayClass{}
	found, err := get(ctx, p, "", g.Spec.GatewayClassName, class)
	if err != nil {
		return fmt.Errorf("class: %w", err)
	}
	if why := unaccepted(g, class, found); why != "" {
		p.last.Remove(g.UID)
		conclude(g, finding{accepted: why, resolved: why}, p.now())
		return step.Wait{After: probeInterval, Reason: why} // the class wakes it
	}
	of := fmt.Sprintf("%d %s %d", g.Generation, class.UID, class.Generation)
	last, _ := p.lastOf(g.UID)
	if last.of == of {
		if wait := last.due().Sub(p.now()); wait > 0 {
			return step.Wait{After: wait, Reason: "the gateway was probed"}
		}
	} else {
		last = probed{of: of}
	}
	seen := &v1alpha1.GatewayProbe{}
	if err := p.SubResource("probe").Create(ctx, g, seen); err != nil {
		if client.IgnoreNotFound(err) == nil {
			return step.ErrDone // it was deleted
		}
		return fmt.Errorf("probe: %w", err)
	}
	if seen.Generation != 0 && seen.Generation != g.Generation {
		return step.Wait{After: again, Reason: "the gateway changed"}
	}
	last.at, last.failures = p.now(), last.failures+1
	if seen.Connected {
		last.failures = 0
	}
	p.last.Add(g.UID, last)
	// A connection that is lost once is no reason to call the gateway not ready: it is probed again at once.
	if blip := seen.Resolved && !seen.Connected && last.failures == 1 && g.Status.Ready && g.Status.ObservedGeneration == g.Generation; blip {
		note(g, seen)
	} else {
		conclude(g, findingOf(seen), p.now())
	}
	return step.Wait{After: last.due().Sub(p.now()), Reason: "the gateway is probed again"}
}

func (p *prober) lastOf(uid types.UID) (probed, bool) {
	known, ok := p.last.Get(uid)
	if !ok {
		return probed{}, false
	}
	last, ok := known.(probed)
	return last, ok
}

// unaccepted returns why the spec of a gateway is not usable with its class; empty if it is.
func unaccepted(g *v1alpha1.Gateway, class *v1alpha1.GatewayClass, found bool) string {
	s := &g.Spec
	switch {
	case !found:
		return fmt.Sprintf("spec.gatewayClassName: the GatewayClass %s does not exist", s.GatewayClassName)
	case !class.Status.Accepted || class.Status.ObservedGeneration != class.Generation:
		return fmt.Sprintf("spec.gatewayClassName: the GatewayClass %s is not accepted", s.GatewayClassName)
	case (s.Adapter.Endpoint == "") == (s.Adapter.ServiceRef == nil):
		return "spec.adapter: needs exactly one of endpoint and serviceRef"
	case s.InboundAuthRef.Name == s.OutboundAuthRef.Name:
		return "spec.outboundAuthRef: must be another Secret than spec.inboundAuthRef"
	}
	return ""
}

// finding is what is wrong with a gateway, by condition; empty is right. seen is nil if it was not probed.
type finding struct {
	accepted, resolved, connected string
	seen                          *v1alpha1.GatewayProbe
}

func findingOf(seen *v1alpha1.GatewayProbe) finding {
	f := finding{seen: seen}
	switch {
	case !seen.Resolved:
		f.resolved = cmp.Or(seen.Message, "a Secret or the adapter was not found")
	case !seen.Connected:
		f.connected = cmp.Or(seen.Message, "the adapter did not answer")
	}
	return f
}

// note writes down what a probe saw, whether or not the adapter answered.
func note(g *v1alpha1.Gateway, seen *v1alpha1.GatewayProbe) {
	s := &g.Status
	s.ResolvedEndpoint = seen.Endpoint
	s.ObservedInboundAuthSecretVersion, s.ObservedOutboundAuthSecretVersion = seen.InboundAuthSecretVersion, seen.OutboundAuthSecretVersion
	if seen.Capabilities != nil {
		s.ObservedCapabilities = seen.Capabilities
	}
}

// conclude writes down what was found.
func conclude(g *v1alpha1.Gateway, f finding, now time.Time) {
	s := &g.Status
	if s.ObservedGeneration != g.Generation { // what was observed belongs to one spec
		s.ObservedCapabilities, s.LastSuccessfulProbe = nil, nil
	}
	why := cmp.Or(f.accepted, f.resolved, f.connected)
	changed := s.Ready != (why == "") || s.ObservedGeneration != g.Generation
	if f.seen != nil {
		before := s.DeepCopy()
		note(g, f.seen)
		changed = changed || s.ObservedInboundAuthSecretVersion != before.ObservedInboundAuthSecretVersion || s.ObservedOutboundAuthSecretVersion != before.ObservedOutboundAuthSecretVersion
	} else {
		note(g, &v1alpha1.GatewayProbe{})
	}
	s.Accepted, s.ResolvedRefs = f.accepted == "", f.resolved == ""
	s.Connected = s.Accepted && s.ResolvedRefs && f.connected == ""
	s.Ready, s.ObservedGeneration, s.Message = why == "", g.Generation, brief(why)
	// The time alone is written once in an interval.
	if s.Connected && (changed || s.LastSuccessfulProbe == nil || now.Sub(s.LastSuccessfulProbe.Time) >= probeInterval) {
		at := metav1.NewTime(now).Rfc3339Copy()
		s.LastSuccessfulProbe = &at
	}
	set(&s.Conditions, g.Generation,
		judgment{v1alpha1.ConditionAccepted, s.Accepted, v1alpha1.ReasonValidationSucceeded, v1alpha1.ReasonValidationFailed, brief(f.accepted)},
		judgment{v1alpha1.ConditionResolvedRefs, s.ResolvedRefs, v1alpha1.ReasonReferencesResolved, v1alpha1.ReasonReferencesNotResolved, brief(f.resolved)},
		judgment{v1alpha1.ConditionConnected, s.Connected, v1alpha1.ReasonProbeSucceeded, v1alpha1.ReasonProbeFailed, s.Message},
		judgment{v1alpha1.ConditionReady, s.Ready, v1alpha1.ReasonReady, v1alpha1.ReasonNotReady, s.Message},
	)
}
