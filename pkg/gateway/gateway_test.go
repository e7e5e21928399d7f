// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package gateway

import (
	"slices"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/platform-ai/platform/pkg/apis/core/v1alpha1"
	"github.com/platform-ai/platform/pkg/gateway/protocol"
)

func binding(name string, priority int32, thread, sender string) *v1alpha1.GatewayBinding {
	return &v1alpha1.GatewayBinding{ObjectMeta: metav1.ObjectMeta{Name: name, UID: types.UID(name)}, Spec: v1alpha1.GatewayBindingSpec{
		GatewayRef: v1alpha1.LocalReference{Name: "chat"}, Priority: priority, Match: v1alpha1.GatewayMatch{AccountID: "a", ContextID: "c", ThreadID: thread, SenderID: sender},
		SenderPolicy: v1alpha1.GatewaySenderPolicy{AllowedSenderIDs: []string{"ada"}},
	}}
}

// TestRouteOf: priority decides, then who names the thread, then who names the sender; what is left is ambiguous.
func TestRouteOf(t *testing.T) {
	t.Parallel()
	plain, low, thread, sender, twin := binding("plain", 0, "", ""), binding("low", -1, "t", "ada"), binding("thread", 0, "t", ""), binding("sender", 0, "", "ada"), binding("twin", 0, "", "")
	other := binding("other", 9, "", "")
	other.Spec.GatewayRef.Name = "elsewhere"
	for want, all := range map[string][]*v1alpha1.GatewayBinding{
		"plain":                         {low, plain, other},
		"thread":                        {sender, plain, thread},
		"sender":                        {plain, sender},
		v1alpha1.ReasonNoBinding:        {other, binding("elsewhere", 0, "u", "")},
		v1alpha1.ReasonAmbiguousBinding: {plain, low, twin},
	} {
		r := RouteOf(&v1alpha1.GatewayEventSpec{GatewayOwner: v1alpha1.GatewayOwner{GatewayName: "chat"}, AccountID: "a", ContextID: "c", ThreadID: "t", SenderID: "ada"}, all)
		got := r.Reason
		if r.Binding != nil {
			got = r.Binding.Name
		}
		if got != want {
			t.Errorf("%s, not %s", got, want)
		}
	}
	stranger := &v1alpha1.GatewayEventSpec{GatewayOwner: v1alpha1.GatewayOwner{GatewayName: "chat"}, AccountID: "a", ContextID: "c", SenderID: "eve", SenderDisplayName: "ada"}
	if r := RouteOf(stranger, []*v1alpha1.GatewayBinding{plain}); r.Reason != v1alpha1.ReasonSenderNotAllowed {
		t.Errorf("a stranger: %+v", r)
	}
}

// TestSessionName: which events are one conversation in each mode.
func TestSessionName(t *testing.T) {
	t.Parallel()
	base := v1alpha1.GatewayEventSpec{GatewayOwner: v1alpha1.GatewayOwner{GatewayUID: "g"}, AccountID: "a", ContextID: "c", ThreadID: "t", SenderID: "s"}
	changes := map[string]func(*v1alpha1.GatewayEventSpec){
		"context": func(s *v1alpha1.GatewayEventSpec) { s.ContextID = "x" }, "thread": func(s *v1alpha1.GatewayEventSpec) { s.ThreadID = "x" },
		"sender": func(s *v1alpha1.GatewayEventSpec) { s.SenderID = "x" }, "gateway": func(s *v1alpha1.GatewayEventSpec) { s.GatewayUID = "x" },
	}
	for mode, apart := range map[v1alpha1.GatewaySessionMode]string{
		v1alpha1.GatewaySessionContext: "context gateway", v1alpha1.GatewaySessionThread: "context thread gateway", v1alpha1.GatewaySessionSender: "sender gateway",
		v1alpha1.GatewaySessionContextSender: "context sender gateway", v1alpha1.GatewaySessionThreadSender: "context thread sender gateway", v1alpha1.GatewaySessionExplicit: "gateway",
	} {
		b := binding("b", 0, "", "")
		b.Spec.Session = v1alpha1.GatewaySession{Mode: mode, Name: "n"}
		for what, change := range changes {
			other := base
			change(&other)
			differs := SessionName(b, "e", &base) != SessionName(b, "e", &other)
			if want := slices.Contains(strings.Fields(apart), what); differs != want {
				t.Errorf("%s: another %s is another session: %v", mode, what, differs)
			}
		}
	}
}

// TestDigest: what may differ in a repetition, and what may not.
func TestDigest(t *testing.T) {
	t.Parallel()
	at := time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)
	digest := func(change func(*protocol.Event)) string {
		when := at
		e := &protocol.Event{ExternalEventID: "e", Text: "hello", OccurredAt: &when, Metadata: map[string]string{"a": "1", "b": "2"}}
		change(e)
		d, err := Digest(e)
		if err != nil {
			t.Fatal(err)
		}
		return d
	}
	first := digest(func(*protocol.Event) {})
	for what, c := range map[string]struct {
		change func(*protocol.Event)
		same   bool
	}{
		"another name":       {func(e *protocol.Event) { e.Sender.DisplayName = "x" }, true},
		"another arrival":    {func(e *protocol.Event) { e.ReceivedAt = &at }, true},
		"another time zone":  {func(e *protocol.Event) { l := at.In(time.FixedZone("x", 3600)); e.OccurredAt = &l }, true},
		"another text":       {func(e *protocol.Event) { e.Text = "x" }, false},
		"other metadata":     {func(e *protocol.Event) { e.Metadata["a"] = "x" }, false},
		"another occurrence": {func(e *protocol.Event) { l := at.Add(1); e.OccurredAt = &l }, false},
	} {
		if (digest(c.change) == first) != c.same {
			t.Errorf("%s: the digest is the same: %v", what, !c.same)
		}
	}
}

// TestCompareDeliveries: the order of the deliveries of a session.
func TestCompareDeliveries(t *testing.T) {
	t.Parallel()
	order := []v1alpha1.GatewayDeliverySpec{{Sequence: 1, Part: 1}, {Sequence: 1, Part: 2}, {Sequence: 1}, {Sequence: 2, Part: 1}, {Sequence: 2}}
	for i := range order {
		for j := range order {
			if got := CompareDeliveries(&order[i], &order[j]) < 0; got != (i < j) {
				t.Errorf("%+v before %+v: %v", order[i], order[j], got)
			}
		}
	}
}
