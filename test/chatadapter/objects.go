// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package chatadapter

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/platform-ai/platform/pkg/apis/core/v1alpha1"
	"github.com/platform-ai/platform/pkg/gateway/protocol"
)

// Inbound is the token that the adapter sends.
const Inbound = "the-adapter-says-this-0123456789"

// Class returns the class stand-in.
func (*Adapter) Class() *v1alpha1.GatewayClass {
	return &v1alpha1.GatewayClass{ObjectMeta: metav1.ObjectMeta{Name: "stand-in"}, Spec: v1alpha1.GatewayClassSpec{
		ContractVersion: v1alpha1.GatewayContractV1, AllowedMetadataKeys: []string{"team"},
		Capabilities: v1alpha1.GatewayCapabilities{InboundText: true, OutboundText: true, Threads: true, SenderIdentity: true, InterimMessages: true},
	}}
}

// Gateway returns the gateway chat to the adapter.
func (a *Adapter) Gateway() *v1alpha1.Gateway {
	return &v1alpha1.Gateway{ObjectMeta: metav1.ObjectMeta{Name: "chat"}, Spec: v1alpha1.GatewaySpec{
		GatewayClassName: "stand-in", Adapter: v1alpha1.GatewayAdapter{Endpoint: a.URL},
		InboundAuthRef: v1alpha1.KeyReference{Name: "in", Key: "token"}, OutboundAuthRef: v1alpha1.KeyReference{Name: "out", Key: "token"},
	}}
}

// Secrets returns the Secrets in and out of the gateway.
func (a *Adapter) Secrets() []*corev1.Secret {
	secret := func(name, label string, data map[string]string) *corev1.Secret {
		return &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{label: "true"}, Annotations: map[string]string{
			v1alpha1.AnnotationGatewayName: "chat", v1alpha1.AnnotationGatewayEndpoint: a.URL,
		}}, StringData: data}
	}
	return []*corev1.Secret{
		secret("in", v1alpha1.LabelGatewayInboundAuth, map[string]string{"token": Inbound}),
		secret("out", v1alpha1.LabelGatewayOutboundAuth, map[string]string{"token": Token, "ca.crt": a.CA()}),
	}
}

// Binding returns a binding of the gateway: in a context of its name the Agent talker answers ada and bob, in a session for each thread.
func (*Adapter) Binding(name string) *v1alpha1.GatewayBinding {
	return &v1alpha1.GatewayBinding{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: v1alpha1.GatewayBindingSpec{
		GatewayRef: v1alpha1.LocalReference{Name: "chat"}, AgentRef: v1alpha1.LocalReference{Name: "talker"},
		Match:        v1alpha1.GatewayMatch{AccountID: "bot", ContextID: name},
		SenderPolicy: v1alpha1.GatewaySenderPolicy{AllowedSenderIDs: []string{"ada", "bob"}},
		Session:      v1alpha1.GatewaySession{Mode: v1alpha1.GatewaySessionThread},
	}}
}

// Talker returns the Agent talker, whose model is that of the Provider model.
func (*Adapter) Talker() *v1alpha1.Agent {
	return &v1alpha1.Agent{ObjectMeta: metav1.ObjectMeta{Name: "talker"}, Spec: v1alpha1.AgentSpec{ProviderRef: &v1alpha1.NamespacedReference{Name: "model"}}}
}

// Event returns an event of ada in a thread of the room.
func Event(id, thread, text string) *protocol.Event {
	return &protocol.Event{
		ProtocolVersion: protocol.Version, ExternalEventID: id, EventType: protocol.EventText, AccountID: "bot", ContextID: "room", ThreadID: thread,
		Sender: protocol.Sender{ID: "ada", DisplayName: "Ada"}, Text: text, ReplyTarget: "to-" + thread,
	}
}

// Echo is the script of a model that says what it was told.
const Echo = `turns: [{reply: {text: "You said: {{ .Prompt }}"}}]`
