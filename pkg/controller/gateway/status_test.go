// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package gateway

import (
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/platform-ai/platform/pkg/apis/core/v1alpha1"
)

// conditions returns conditions as text, such as "Accepted+ Ready-NotReady".
func conditions(all []metav1.Condition) string {
	var words []string
	for _, c := range all {
		word := c.Type + "+"
		if c.Status != metav1.ConditionTrue {
			word = c.Type + "-"
		}
		words = append(words, word+c.Reason)
	}
	return strings.Join(words, " ")
}

// TestConclude: what a probe finds becomes the conditions of a gateway.
func TestConclude(t *testing.T) {
	good := &v1alpha1.GatewayProbe{Resolved: true, Connected: true, Endpoint: "https://a", InboundAuthSecretVersion: "1", OutboundAuthSecretVersion: "2", Capabilities: &v1alpha1.GatewayObservedCapabilities{AdapterName: "a"}}
	g := &v1alpha1.Gateway{ObjectMeta: metav1.ObjectMeta{Generation: 1}}
	for _, tc := range []struct {
		name       string
		found      finding
		conditions string
		// can is set if what the adapter can do is known.
		can bool
	}{
		{"no class", finding{accepted: "no class", resolved: "no class"}, "Accepted-ValidationFailed ResolvedRefs-ReferencesNotResolved Connected-ProbeFailed Ready-NotReady", false},
		{"no Secret", findingOf(&v1alpha1.GatewayProbe{Message: "no Secret"}), "Accepted+ValidationSucceeded ResolvedRefs-ReferencesNotResolved Connected-ProbeFailed Ready-NotReady", false},
		{"connected", findingOf(good), "Accepted+ValidationSucceeded ResolvedRefs+ReferencesResolved Connected+ProbeSucceeded Ready+Ready", true},
		{"lost", findingOf(&v1alpha1.GatewayProbe{Resolved: true, Message: "lost"}), "Accepted+ValidationSucceeded ResolvedRefs+ReferencesResolved Connected-ProbeFailed Ready-NotReady", true},
	} {
		conclude(g, tc.found, noon)
		if got := conditions(g.Status.Conditions); got != tc.conditions || (g.Status.ObservedCapabilities != nil) != tc.can || meta.IsStatusConditionTrue(g.Status.Conditions, v1alpha1.ConditionReady) != g.Status.Ready {
			t.Errorf("%s: %s, capabilities %v", tc.name, got, g.Status.ObservedCapabilities)
		}
		if !g.Status.Ready && g.Status.Message == "" {
			t.Errorf("%s: no message", tc.name)
		}
	}
	// The time alone is a reason to write once in an interval.
	conclude(g, findingOf(good), noon)
	before := g.Status.DeepCopy()
	conclude(g, findingOf(good), noon.Add(probeInterval-time.Second))
	if !before.LastSuccessfulProbe.Equal(g.Status.LastSuccessfulProbe) {
		t.Error("a probe that found nothing new was written down early")
	}
	conclude(g, findingOf(good), noon.Add(probeInterval))
	if before.LastSuccessfulProbe.Equal(g.Status.LastSuccessfulProbe) {
		t.Error("a probe was not written down")
	}
	// What was observed belongs to one spec.
	g.Generation++
	conclude(g, findingOf(&v1alpha1.GatewayProbe{Resolved: true, Message: "lost"}), noon)
	if g.Status.ObservedCapabilities != nil || g.Status.LastSuccessfulProbe != nil {
		t.Errorf("%+v", g.Status)
	}
}

// TestJudge: a binding routes events if it is the only one for them and the adapter can do what it needs, and is ready if all else is.
func TestJudge(t *testing.T) {
	const yes = "Accepted+ValidationSucceeded ResolvedRefs+ReferencesResolved Programmed+Programmed Ready+Ready"
	for _, tc := range []struct {
		name            string
		change          func(*v1alpha1.GatewayBinding, *around)
		want, complains string
	}{
		{"all is well", func(*v1alpha1.GatewayBinding, *around) {}, yes, ""},
		{"no gateway", func(_ *v1alpha1.GatewayBinding, a *around) { a.gateway, a.class = nil, nil }, "Accepted+ValidationSucceeded ResolvedRefs-ReferencesNotResolved Programmed-AmbiguousOrUnsupported Ready-NotReady", "Gateway g does not exist"},
		{"no agent", func(_ *v1alpha1.GatewayBinding, a *around) { a.agent = nil }, "Accepted+ValidationSucceeded ResolvedRefs-ReferencesNotResolved Programmed+Programmed Ready-NotReady", "Agent a does not exist"},
		{"another for the same", func(b *v1alpha1.GatewayBinding, a *around) {
			other := *b.DeepCopy()
			other.Name, other.UID = "other", "other"
			a.others = append(a.others, other)
		}, "Accepted+ValidationSucceeded ResolvedRefs+ReferencesResolved Programmed-AmbiguousOrUnsupported Ready-NotReady", "GatewayBinding other"},
		{"another that is deleted", func(b *v1alpha1.GatewayBinding, a *around) {
			other := *b.DeepCopy()
			other.UID, other.DeletionTimestamp = "other", at(0)
			a.others = append(a.others, other)
		}, yes, ""},
		{"not known yet", func(_ *v1alpha1.GatewayBinding, a *around) { a.gateway.Status.ObservedCapabilities = nil }, "Accepted+ValidationSucceeded ResolvedRefs+ReferencesResolved Programmed-AmbiguousOrUnsupported Ready-NotReady", "not known yet"},
		{"the class lacks threads", func(b *v1alpha1.GatewayBinding, a *around) {
			b.Spec.Match.ThreadID, a.class.Spec.Capabilities.Threads = "t", false
		}, "Accepted+ValidationSucceeded ResolvedRefs+ReferencesResolved Programmed-AmbiguousOrUnsupported Ready-NotReady", "capability threads"},
		{"the gateway is not ready", func(_ *v1alpha1.GatewayBinding, a *around) { a.gateway.Status.Ready = false }, "Accepted+ValidationSucceeded ResolvedRefs+ReferencesResolved Programmed+Programmed Ready-NotReady", "Gateway g is not ready"},
		{"the gateway was changed", func(_ *v1alpha1.GatewayBinding, a *around) { a.gateway.Generation++ }, "Accepted+ValidationSucceeded ResolvedRefs+ReferencesResolved Programmed+Programmed Ready-NotReady", "Gateway g is not ready"},
		{"the agent is not ready", func(_ *v1alpha1.GatewayBinding, a *around) { a.agent.Status.Conditions = nil }, "Accepted+ValidationSucceeded ResolvedRefs+ReferencesResolved Programmed+Programmed Ready-NotReady", "Agent a is not ready"},
	} {
		can := v1alpha1.GatewayCapabilities{InboundText: true, OutboundText: true, Threads: true, IdempotentDelivery: true}
		object := func(name string) metav1.ObjectMeta {
			return metav1.ObjectMeta{Name: name, UID: types.UID(name), Generation: 1}
		}
		b := &v1alpha1.GatewayBinding{ObjectMeta: object("b")}
		b.Spec = v1alpha1.GatewayBindingSpec{
			GatewayRef: v1alpha1.LocalReference{Name: "g"}, AgentRef: v1alpha1.LocalReference{Name: "a"}, SenderPolicy: v1alpha1.GatewaySenderPolicy{Mode: v1alpha1.GatewaySendersAll},
		}
		a := around{
			gateway: &v1alpha1.Gateway{ObjectMeta: object("g"), Status: v1alpha1.GatewayStatus{Ready: true, ObservedGeneration: 1, ObservedCapabilities: &v1alpha1.GatewayObservedCapabilities{Capabilities: can}}},
			class:   &v1alpha1.GatewayClass{ObjectMeta: object("c"), Spec: v1alpha1.GatewayClassSpec{Capabilities: can}},
			agent:   &v1alpha1.Agent{ObjectMeta: object("a")},
		}
		meta.SetStatusCondition(&a.agent.Status.Conditions, metav1.Condition{Type: v1alpha1.ConditionReady, Status: metav1.ConditionTrue, Reason: v1alpha1.ReasonReady})
		a.others = []v1alpha1.GatewayBinding{*b}
		tc.change(b, &a)
		judge(b, a)
		if got := conditions(b.Status.Conditions); got != tc.want || !strings.Contains(b.Status.Message, tc.complains) || (tc.complains == "") != b.Status.Ready {
			t.Errorf("%s: %s (%s)", tc.name, got, b.Status.Message)
		}
	}
}
