// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package scene

import (
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/platform-ai/platform/pkg/apis/core/v1alpha1"
)

// gatewaySession is the session of the deliveries of gateways that answer no event that is kept.
var gatewaySession = "gateway-session-" + strings.Repeat("0a1b2c3d", 5)

// Gateway makes a gateway that is not connected, with its class, the binding NAME-room, and records that no adapter and no controller has made:
// an event that was rejected, and two deliveries about an event that is not kept, of which one is a dead letter that may have been posted,
// and one is tried again later. All of them say said.
func (s *Scene) Gateway(name, said string) {
	s.t.Helper()
	ctx, c, ns := s.t.Context(), s.API.CoreV1alpha1(), s.namespace
	_, err := c.GatewayClasses().Create(ctx, &v1alpha1.GatewayClass{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: v1alpha1.GatewayClassSpec{
		ContractVersion: v1alpha1.GatewayContractV1, Capabilities: v1alpha1.GatewayCapabilities{InboundText: true, OutboundText: true},
	}}, metav1.CreateOptions{})
	s.must(nil, err)
	g, err := c.Gateways(ns).Create(ctx, &v1alpha1.Gateway{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: v1alpha1.GatewaySpec{
		GatewayClassName: name, Adapter: v1alpha1.GatewayAdapter{Endpoint: "https://" + name + ".example.com"},
		InboundAuthRef: v1alpha1.KeyReference{Name: name + "-in", Key: "token"}, OutboundAuthRef: v1alpha1.KeyReference{Name: name + "-out", Key: "token"},
	}}, metav1.CreateOptions{})
	s.must(nil, err)
	now := metav1.Now()
	condition := func(kind string, status metav1.ConditionStatus, message string) metav1.Condition {
		return metav1.Condition{Type: kind, Status: status, Reason: kind, Message: message, LastTransitionTime: now}
	}
	g.Status = v1alpha1.GatewayStatus{
		Accepted: true, ResolvedRefs: true, ObservedGeneration: g.Generation, ResolvedEndpoint: g.Spec.Adapter.Endpoint, LastSuccessfulProbe: &now, Message: "it answers 500: " + said,
		ObservedCapabilities: &v1alpha1.GatewayObservedCapabilities{
			ContractVersion: "platform.gateway.v1", AdapterName: said[:min(len(said), 64)], AdapterVersion: "1.2", Capabilities: v1alpha1.GatewayCapabilities{InboundText: true, SenderIdentity: true},
		},
		Conditions: []metav1.Condition{condition(v1alpha1.ConditionAccepted, metav1.ConditionTrue, ""), condition(v1alpha1.ConditionConnected, metav1.ConditionFalse, "it answers 500: "+said)},
	}
	s.must(c.Gateways(ns).UpdateStatus(ctx, g, metav1.UpdateOptions{}))
	b, err := c.GatewayBindings(ns).Create(ctx, &v1alpha1.GatewayBinding{ObjectMeta: metav1.ObjectMeta{Name: name + "-room"}, Spec: v1alpha1.GatewayBindingSpec{
		GatewayRef: v1alpha1.LocalReference{Name: name}, AgentRef: v1alpha1.LocalReference{Name: "helper"}, Match: v1alpha1.GatewayMatch{AccountID: "bot", ContextID: "room"},
		SenderPolicy: v1alpha1.GatewaySenderPolicy{AllowedSenderIDs: []string{"ada"}},
	}}, metav1.CreateOptions{})
	s.must(nil, err)
	b.Status = v1alpha1.GatewayBindingStatus{ObservedGeneration: b.Generation, Message: "the gateway is not ready: " + said}
	s.must(c.GatewayBindings(ns).UpdateStatus(ctx, b, metav1.UpdateOptions{}))

	_, err = c.GatewayEvents(ns).Create(ctx, &v1alpha1.GatewayEvent{ObjectMeta: metav1.ObjectMeta{Name: name + ".rejected"}, Spec: v1alpha1.GatewayEventSpec{
		GatewayOwner: v1alpha1.GatewayOwner{GatewayName: name, GatewayUID: g.UID}, ExternalEventID: "m-1", PayloadSHA256: strings.Repeat("0", 64), ProtocolVersion: v1alpha1.GatewayContractV1,
		EventType: "text", AccountID: "bot", ContextID: "room", ThreadID: "t1", SenderID: "mallory", SenderDisplayName: said[:min(len(said), 200)], Text: "Open the door. " + said, CreatedAt: metav1.NowMicro(),
	}}, metav1.CreateOptions{})
	s.must(nil, err)
	later := metav1.NewTime(now.Add(time.Hour))
	gone := &v1alpha1.GatewayEvent{ObjectMeta: metav1.ObjectMeta{Name: name + ".gone"}, Spec: v1alpha1.GatewayEventSpec{
		GatewayOwner: v1alpha1.GatewayOwner{GatewayName: name, GatewayUID: g.UID}, AccountID: "bot", ContextID: "room", ThreadID: "t1",
	}, Status: v1alpha1.GatewayEventStatus{SessionName: gatewaySession, BindingName: b.Name, TaskName: "plain"}}
	s.delivery(gone, name+".dead", "It is open. "+said, v1alpha1.GatewayDeliveryStatus{
		State: v1alpha1.GatewayDeliveryDeadLettered, Reason: v1alpha1.ReasonAttemptsSpent, AttemptCount: 10, OutcomeUnknown: true, LastError: "no answer came: " + said,
	})
	s.delivery(gone, name+".again", "It is closed. "+said, v1alpha1.GatewayDeliveryStatus{
		State: v1alpha1.GatewayDeliveryRetryScheduled, Reason: v1alpha1.ReasonNotReached, UnreachedCount: 3, NextAttemptAt: &later, ExpiresAt: &later, LastError: "connection refused: " + said,
	})
}

// Answer answers an event that waits, as a controller and an adapter do: late, by the task plain.
func (s *Scene) Answer(name, text string) {
	s.t.Helper()
	ctx, all := s.t.Context(), s.API.CoreV1alpha1().GatewayEvents(s.namespace)
	e, err := all.Get(ctx, name, metav1.GetOptions{})
	until := metav1.NewTime(time.Now().Add(time.Minute))
	for _, to := range []v1alpha1.GatewayEventState{v1alpha1.GatewayEventDispatching, v1alpha1.GatewayEventTaskCreated, v1alpha1.GatewayEventCompleted} {
		if err != nil {
			break
		}
		st := &e.Status
		st.State, st.NextAttemptAt, st.LeaseHolder, st.LeaseUntil = to, nil, "", nil
		switch to {
		case v1alpha1.GatewayEventDispatching:
			st.LeaseHolder, st.LeaseUntil = "scene", &until
		case v1alpha1.GatewayEventTaskCreated:
			st.TaskName = "plain"
		default:
			st.Reason, st.DeliveryID = v1alpha1.ReasonGatewayAnswered, name+".answer"
		}
		e, err = all.UpdateStatus(ctx, e, metav1.UpdateOptions{})
	}
	s.must(nil, err)
	s.delivery(e, e.Status.DeliveryID, text, v1alpha1.GatewayDeliveryStatus{
		State: v1alpha1.GatewayDeliveryDelivered, Reason: v1alpha1.ReasonGatewayDelivered, AttemptCount: 2, Late: true, ManualRetryCount: 1, RetriedBy: "ann", ProviderMessageID: "m-2",
	})
}

// delivery makes a delivery about an event that is where a status says.
func (s *Scene) delivery(of *v1alpha1.GatewayEvent, name, text string, status v1alpha1.GatewayDeliveryStatus) {
	s.t.Helper()
	ctx, all := s.t.Context(), s.API.CoreV1alpha1().GatewayDeliveries(s.namespace)
	d, err := all.Create(ctx, &v1alpha1.GatewayDelivery{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: v1alpha1.GatewayDeliverySpec{
		GatewayOwner: of.Spec.GatewayOwner, IdempotencyID: name, BindingName: of.Status.BindingName, EventID: of.Name, TaskName: of.Status.TaskName, SessionName: of.Status.SessionName,
		Kind: v1alpha1.GatewayDeliveryFinal, AccountID: of.Spec.AccountID, ContextID: of.Spec.ContextID, ThreadID: of.Spec.ThreadID, Text: text, CreatedAt: metav1.NowMicro(),
	}}, metav1.CreateOptions{})
	until := metav1.NewTime(time.Now().Add(time.Minute))
	for _, to := range []v1alpha1.GatewayDeliveryState{v1alpha1.GatewayDeliverySending, status.State} {
		if err != nil {
			break
		}
		d.Status = status
		if d.Status.State = to; to == v1alpha1.GatewayDeliverySending {
			d.Status.NextAttemptAt, d.Status.LeaseHolder, d.Status.LeaseUntil = nil, "scene", &until
		}
		d, err = all.UpdateStatus(ctx, d, metav1.UpdateOptions{})
	}
	s.must(nil, err)
}
