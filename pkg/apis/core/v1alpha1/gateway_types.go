// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// GatewayContract is a version of the protocol between the platform and the adapters of chat systems.
// +enum
// +k8s:enum
type GatewayContract string

// Values of GatewayContract.
const (
	GatewayContractV1 GatewayContract = "platform.gateway.v1"
)

// +genclient
// +genclient:nonNamespaced
// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object
// +k8s:supportsSubresource="/status"

// GatewayClass is a kind of adapters: what gateways to one chat system have in common. An administrator of the installation makes it.
type GatewayClass struct {
	metav1.TypeMeta `json:",inline"`
	// metadata is the standard object metadata.
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`
	// spec is what is wanted.
	// +required
	Spec GatewayClassSpec `json:"spec"`
	// status is what is observed, written by controllers.
	// +optional
	Status GatewayClassStatus `json:"status,omitempty"`
}

// RESTPath returns where REST clients read gateway classes.
func (*GatewayClass) RESTPath() (path string, written bool) { return "gatewayclasses", false }

// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object

// GatewayClassList is a list of gateway classes.
type GatewayClassList struct {
	metav1.TypeMeta `json:",inline"`
	// metadata is the standard list metadata.
	// +optional
	metav1.ListMeta `json:"metadata,omitempty"`
	// items are the gateway classes.
	Items []GatewayClass `json:"items"`
}

// GatewayCategory is what a gateway connects to.
// +enum
// +k8s:enum
type GatewayCategory string

// Values of GatewayCategory.
const (
	GatewayChat     GatewayCategory = "chat"
	GatewayWebhook  GatewayCategory = "webhook"
	GatewayHTTP     GatewayCategory = "http"
	GatewayEvents   GatewayCategory = "event"
	GatewayInternal GatewayCategory = "internal"
)

// GatewayClassSpec is what gateways of a class have in common.
type GatewayClassSpec struct {
	// contractVersion is the protocol that the adapters speak.
	// +required
	// +k8s:required
	ContractVersion GatewayContract `json:"contractVersion"`
	// category is what the gateways connect to.
	// +optional
	// +default="chat"
	// +k8s:optional
	Category GatewayCategory `json:"category,omitempty"`
	// capabilities are what an adapter of this class must be able to do. A gateway whose adapter says that it cannot is not connected.
	// +optional
	Capabilities GatewayCapabilities `json:"capabilities,omitempty"`
	// allowedMetadataKeys are the keys that the metadata of an event may have; an event with another one is refused.
	// +optional
	// +k8s:optional
	// +k8s:maxItems=32
	// +listType=set
	AllowedMetadataKeys []string `json:"allowedMetadataKeys,omitempty"`
}

// GatewayCapabilities are things that an adapter can do.
type GatewayCapabilities struct {
	// inboundText says that it delivers what people write.
	// +optional
	InboundText bool `json:"inboundText,omitempty"`
	// outboundText says that it posts texts.
	// +optional
	OutboundText bool `json:"outboundText,omitempty"`
	// threads says that it tells the threads of a context apart.
	// +optional
	Threads bool `json:"threads,omitempty"`
	// senderIdentity says that the sender whom it names is who wrote, as the chat system has verified.
	// +optional
	SenderIdentity bool `json:"senderIdentity,omitempty"`
	// explicitSessions says that bindings may name sessions.
	// +optional
	ExplicitSessions bool `json:"explicitSessions,omitempty"`
	// idempotentDelivery says that it remembers the idempotency ids of deliveries, and answers a repetition with the first outcome. Each
	// adapter must.
	// +optional
	IdempotentDelivery bool `json:"idempotentDelivery,omitempty"`
	// interimMessages says that it posts texts while a task still runs.
	// +optional
	InterimMessages bool `json:"interimMessages,omitempty"`
}

// GatewayClassStatus is what is observed of a gateway class.
type GatewayClassStatus struct {
	// accepted is set when gateways of the class can be used.
	// +optional
	Accepted bool `json:"accepted,omitempty"`
	// observedGeneration is the generation that the status is about.
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`
	// message says what is wrong.
	// +optional
	// +k8s:optional
	// +k8s:maxLength=1024
	Message string `json:"message,omitempty"`
	// conditions are the conditions of the object: Accepted.
	// +optional
	// +k8s:optional
	// +listType=map
	// +listMapKey=type
	// +patchStrategy=merge
	// +patchMergeKey=type
	Conditions []metav1.Condition `json:"conditions,omitempty" patchStrategy:"merge" patchMergeKey:"type"`
}

// +genclient
// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object
// +k8s:supportsSubresource="/status"

// Gateway is an adapter of a chat system, or of something like it, and the Secrets with which the two sides recognise each other.
type Gateway struct {
	metav1.TypeMeta `json:",inline"`
	// metadata is the standard object metadata.
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`
	// spec is what is wanted.
	// +required
	Spec GatewaySpec `json:"spec"`
	// status is what is observed, written by controllers.
	// +optional
	Status GatewayStatus `json:"status,omitempty"`
}

// RESTPath returns where REST clients read gateways.
func (*Gateway) RESTPath() (path string, written bool) { return "gateways", false }

// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object

// GatewayList is a list of gateways.
type GatewayList struct {
	metav1.TypeMeta `json:",inline"`
	// metadata is the standard list metadata.
	// +optional
	metav1.ListMeta `json:"metadata,omitempty"`
	// items are the gateways.
	Items []Gateway `json:"items"`
}

// GatewaySpec is what is wanted of a gateway.
type GatewaySpec struct {
	// gatewayClassName is the GatewayClass.
	// +required
	// +k8s:required
	// +k8s:format=k8s-long-name
	GatewayClassName string `json:"gatewayClassName"`
	// adapter is where the adapter is.
	// +required
	Adapter GatewayAdapter `json:"adapter"`
	// inboundAuthRef is the key of a Secret with the bearer token that the adapter sends with its events. The Secret has the label
	// gateway.platform.ai/inbound-auth=true and the annotation gateway.platform.ai/gateway-name with the name of this gateway.
	// +required
	InboundAuthRef KeyReference `json:"inboundAuthRef"`
	// outboundAuthRef is the key of another Secret with the bearer token that the platform sends to the adapter. The Secret has the label
	// gateway.platform.ai/outbound-auth=true, the annotation gateway.platform.ai/gateway-name, and the annotation
	// gateway.platform.ai/adapter-endpoint with the address of the adapter. Certificates of authorities under its key ca.crt are trusted
	// for the adapter besides those of the system.
	// +required
	OutboundAuthRef KeyReference `json:"outboundAuthRef"`
	// metadata is sent with each delivery. It has at most 32 entries.
	// +optional
	Metadata map[string]string `json:"metadata,omitempty"`
}

// GatewayAdapter is where an adapter is: exactly one of its members.
type GatewayAdapter struct {
	// endpoint is the address of the adapter, https. Its host must have a public address, unless the operator allows it.
	// +optional
	// +k8s:optional
	// +k8s:maxLength=2048
	Endpoint string `json:"endpoint,omitempty"`
	// serviceRef is a Service of the same namespace.
	// +optional
	// +k8s:optional
	ServiceRef *GatewayService `json:"serviceRef,omitempty"`
}

// GatewayService is a Service with a selector, whose Pods serve TLS with a certificate for NAME.NAMESPACE.svc.
type GatewayService struct {
	// name is the name of the Service.
	// +required
	// +k8s:required
	// +k8s:format=k8s-short-name
	Name string `json:"name"`
	// port is its port; 0 is its first one.
	// +optional
	// +k8s:optional
	// +k8s:minimum=0
	// +k8s:maximum=65535
	Port int32 `json:"port,omitempty"`
}

// GatewayStatus is what is observed of a gateway.
type GatewayStatus struct {
	// accepted is set when the spec is usable with its class.
	// +optional
	Accepted bool `json:"accepted,omitempty"`
	// resolvedRefs is set when the class, the Secrets and the adapter were found.
	// +optional
	ResolvedRefs bool `json:"resolvedRefs,omitempty"`
	// connected is set when the adapter answered the last probe, and can do what the class asks for.
	// +optional
	Connected bool `json:"connected,omitempty"`
	// ready is set when events are accepted and answers are delivered.
	// +optional
	Ready bool `json:"ready,omitempty"`
	// observedGeneration is the generation that the status is about.
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`
	// resolvedEndpoint is the address at which the adapter is asked.
	// +optional
	// +k8s:optional
	// +k8s:maxLength=2048
	ResolvedEndpoint string `json:"resolvedEndpoint,omitempty"`
	// observedCapabilities are what the adapter says of itself.
	// +optional
	// +k8s:optional
	ObservedCapabilities *GatewayObservedCapabilities `json:"observedCapabilities,omitempty"`
	// observedInboundAuthSecretVersion is the version of the Secret whose token is accepted. A token of an earlier version is accepted
	// until this has moved.
	// +optional
	// +k8s:optional
	// +k8s:maxLength=256
	ObservedInboundAuthSecretVersion string `json:"observedInboundAuthSecretVersion,omitempty"`
	// observedOutboundAuthSecretVersion is the version of the Secret that the last probe used.
	// +optional
	// +k8s:optional
	// +k8s:maxLength=256
	ObservedOutboundAuthSecretVersion string `json:"observedOutboundAuthSecretVersion,omitempty"`
	// lastSuccessfulProbe is when the adapter last answered a probe.
	// +optional
	// +k8s:optional
	LastSuccessfulProbe *metav1.Time `json:"lastSuccessfulProbe,omitempty"`
	// message says what is wrong.
	// +optional
	// +k8s:optional
	// +k8s:maxLength=1024
	Message string `json:"message,omitempty"`
	// conditions are the conditions of the object: Accepted, ResolvedRefs, Connected, Ready.
	// +optional
	// +k8s:optional
	// +listType=map
	// +listMapKey=type
	// +patchStrategy=merge
	// +patchMergeKey=type
	Conditions []metav1.Condition `json:"conditions,omitempty" patchStrategy:"merge" patchMergeKey:"type"`
}

// GatewayObservedCapabilities are what an adapter says of itself.
type GatewayObservedCapabilities struct {
	// contractVersion is the version of the protocol that the two sides agreed on.
	// +optional
	// +k8s:optional
	// +k8s:maxLength=64
	ContractVersion string `json:"contractVersion,omitempty"`
	// adapterName is the name of the adapter's program.
	// +optional
	// +k8s:optional
	// +k8s:maxLength=256
	AdapterName string `json:"adapterName,omitempty"`
	// adapterVersion is its version.
	// +optional
	// +k8s:optional
	// +k8s:maxLength=256
	AdapterVersion string `json:"adapterVersion,omitempty"`
	// capabilities are what it can do.
	// +optional
	Capabilities GatewayCapabilities `json:"capabilities,omitempty"`
}

// +genclient
// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object
// +k8s:supportsSubresource="/status"

// GatewayBinding has an Agent answer in one conversation of a gateway.
type GatewayBinding struct {
	metav1.TypeMeta `json:",inline"`
	// metadata is the standard object metadata.
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`
	// spec is what is wanted.
	// +required
	Spec GatewayBindingSpec `json:"spec"`
	// status is what is observed, written by controllers.
	// +optional
	Status GatewayBindingStatus `json:"status,omitempty"`
}

// RESTPath returns where REST clients read gateway bindings.
func (*GatewayBinding) RESTPath() (path string, written bool) { return "gatewaybindings", false }

// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object

// GatewayBindingList is a list of gateway bindings.
type GatewayBindingList struct {
	metav1.TypeMeta `json:",inline"`
	// metadata is the standard list metadata.
	// +optional
	metav1.ListMeta `json:"metadata,omitempty"`
	// items are the gateway bindings.
	Items []GatewayBinding `json:"items"`
}

// GatewayBindingSpec says which events an Agent answers, and how. Of several bindings that match an event, the one with the highest
// priority counts; of these one that names the thread, and of these one that names the sender. If two remain, the event is rejected.
type GatewayBindingSpec struct {
	// gatewayRef is a Gateway of the same namespace.
	// +required
	GatewayRef LocalReference `json:"gatewayRef"`
	// agentRef is an Agent of the same namespace.
	// +required
	AgentRef LocalReference `json:"agentRef"`
	// match is the conversation.
	// +required
	Match GatewayMatch `json:"match"`
	// senderPolicy says who may write.
	// +optional
	SenderPolicy GatewaySenderPolicy `json:"senderPolicy,omitempty"`
	// priority decides between bindings, from -1000 to 1000.
	// +optional
	// +k8s:optional
	// +k8s:minimum=-1000
	// +k8s:maximum=1000
	Priority int32 `json:"priority,omitempty"`
	// session says which events are one conversation for the Agent.
	// +optional
	Session GatewaySession `json:"session,omitempty"`
	// taskDefaults are for the tasks of the binding.
	// +optional
	TaskDefaults GatewayTaskDefaults `json:"taskDefaults,omitempty"`
	// activeTurnBehavior is what happens to a message while another one is answered.
	// +optional
	// +default="queue"
	// +k8s:optional
	ActiveTurnBehavior GatewayTurnBehavior `json:"activeTurnBehavior,omitempty"`
	// lateAnswers says what happens to an answer that cannot be delivered for long.
	// +optional
	LateAnswers GatewayLateAnswers `json:"lateAnswers,omitempty"`
	// approvals says where people may decide about what the Agent asks an approval for. In the conversation they are told of it, with what is
	// asked for, if the adapter can post texts while a task runs; senders of whom a GatewayIdentity says who they are decide there.
	// +optional
	// +default="elsewhere"
	// +k8s:optional
	Approvals GatewayApprovals `json:"approvals,omitempty"`
}

// GatewayApprovals says where approvals are decided.
// +enum
// +k8s:enum
type GatewayApprovals string

// Values of GatewayApprovals.
const (
	// GatewayApprovalsElsewhere says nothing of approvals in the conversation.
	GatewayApprovalsElsewhere GatewayApprovals = "elsewhere"
	// GatewayApprovalsConversation tells of approvals in the conversation, and lets people decide there, too.
	GatewayApprovalsConversation GatewayApprovals = "conversation"
)

// GatewayMatch is a conversation of a chat system, in the exact and normalised words of its adapter. Each has at most 256 bytes.
type GatewayMatch struct {
	// accountId is the account of the chat system, such as a workspace or a bot.
	// +required
	// +k8s:required
	AccountID string `json:"accountId"`
	// contextId is the place within the account, such as a channel or a room.
	// +required
	// +k8s:required
	ContextID string `json:"contextId"`
	// threadId is the thread within the context; empty matches all.
	// +optional
	// +k8s:optional
	ThreadID string `json:"threadId,omitempty"`
	// senderId is who writes; empty matches all.
	// +optional
	// +k8s:optional
	SenderID string `json:"senderId,omitempty"`
}

// GatewaySenderMode says who may write.
// +enum
// +k8s:enum
type GatewaySenderMode string

// Values of GatewaySenderMode.
const (
	GatewaySendersListed GatewaySenderMode = "allowlist"
	GatewaySendersAll    GatewaySenderMode = "all"
)

// GatewaySenderPolicy says who may write.
type GatewaySenderPolicy struct {
	// mode is allowlist, for those in allowedSenderIds, or all.
	// +optional
	// +default="allowlist"
	// +k8s:optional
	Mode GatewaySenderMode `json:"mode,omitempty"`
	// allowedSenderIds are ids of senders, each of at most 256 bytes. Names that are shown never count.
	// +optional
	// +k8s:optional
	// +k8s:maxItems=100
	// +listType=set
	AllowedSenderIDs []string `json:"allowedSenderIds,omitempty"`
}

// GatewaySessionMode says which events are one conversation.
// +enum
// +k8s:enum
type GatewaySessionMode string

// Values of GatewaySessionMode.
const (
	// GatewaySessionEphemeral is a session for each event.
	GatewaySessionEphemeral GatewaySessionMode = "ephemeral"
	// GatewaySessionContext is a session for each context.
	GatewaySessionContext GatewaySessionMode = "context"
	// GatewaySessionThread is a session for each thread; what is in no thread has that of its context.
	GatewaySessionThread GatewaySessionMode = "thread"
	// GatewaySessionSender is a session for each sender, wherever they write.
	GatewaySessionSender GatewaySessionMode = "sender"
	// GatewaySessionContextSender is a session for each sender of a context.
	GatewaySessionContextSender GatewaySessionMode = "context-sender"
	// GatewaySessionThreadSender is a session for each sender of a thread.
	GatewaySessionThreadSender GatewaySessionMode = "thread-sender"
	// GatewaySessionExplicit is the session that name names, for all bindings of the gateway that name it.
	GatewaySessionExplicit GatewaySessionMode = "explicit"
)

// GatewaySession says which events are one conversation.
type GatewaySession struct {
	// mode says what events of one session have in common.
	// +optional
	// +default="context"
	// +k8s:optional
	Mode GatewaySessionMode `json:"mode,omitempty"`
	// name names the session of the mode explicit.
	// +optional
	// +k8s:optional
	// +k8s:maxLength=253
	Name string `json:"name,omitempty"`
}

// GatewayTaskDefaults are for the tasks of a binding.
type GatewayTaskDefaults struct {
	// priority is the priority of the tasks, from 0 to 1000.
	// +optional
	// +k8s:optional
	// +k8s:minimum=0
	// +k8s:maximum=1000
	Priority *int32 `json:"priority,omitempty"`
	// timeout limits a task, more than 0 and at most 24h; unset means 30m.
	// +optional
	// +k8s:optional
	Timeout *Duration `json:"timeout,omitempty"`
	// retryPolicy says how failed attempts are repeated: at most 10 retries, a multiplier from 1 to 10, an initial delay of at most 1h.
	// +optional
	// +k8s:optional
	RetryPolicy *RetryPolicy `json:"retryPolicy,omitempty"`
	// agentRuntimeMaxTurns limits the turns of a coding agent, from 1 to 1000.
	// +optional
	// +k8s:optional
	// +k8s:minimum=1
	// +k8s:maximum=1000
	AgentRuntimeMaxTurns *int32 `json:"agentRuntimeMaxTurns,omitempty"`
}

// GatewayTurnBehavior is what happens to a message while another one is answered.
// +enum
// +k8s:enum
type GatewayTurnBehavior string

// Values of GatewayTurnBehavior.
const (
	GatewayTurnQueue GatewayTurnBehavior = "queue"
)

// GatewayLatePolicy is what happens to a late answer.
// +enum
// +k8s:enum
type GatewayLatePolicy string

// Values of GatewayLatePolicy.
const (
	// GatewayLateMark delivers it with a line that says how late it is.
	GatewayLateMark GatewayLatePolicy = "mark"
	// GatewayLateExpire does not deliver it any more.
	GatewayLateExpire GatewayLatePolicy = "expire"
)

// GatewayLateAnswers says what happens to an answer that cannot be delivered for long.
type GatewayLateAnswers struct {
	// after is how long after it was written an answer is late; unset means 10m.
	// +optional
	// +k8s:optional
	After *Duration `json:"after,omitempty"`
	// policy is mark, or expire.
	// +optional
	// +default="mark"
	// +k8s:optional
	Policy GatewayLatePolicy `json:"policy,omitempty"`
}

// GatewayBindingStatus is what is observed of a gateway binding.
type GatewayBindingStatus struct {
	// accepted is set when the spec is usable.
	// +optional
	Accepted bool `json:"accepted,omitempty"`
	// resolvedRefs is set when the Gateway and the Agent exist.
	// +optional
	ResolvedRefs bool `json:"resolvedRefs,omitempty"`
	// programmed is set when events are routed by the binding: no other one matches the same, and the gateway can do what it asks for.
	// +optional
	Programmed bool `json:"programmed,omitempty"`
	// ready is set when the Agent answers.
	// +optional
	Ready bool `json:"ready,omitempty"`
	// observedGeneration is the generation that the status is about.
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`
	// resolvedCapabilities are what the adapter of the gateway can do.
	// +optional
	// +k8s:optional
	ResolvedCapabilities *GatewayCapabilities `json:"resolvedCapabilities,omitempty"`
	// lastInboundActivity is when an event was last dispatched by the binding.
	// +optional
	// +k8s:optional
	LastInboundActivity *metav1.Time `json:"lastInboundActivity,omitempty"`
	// lastOutboundActivity is when an answer was last delivered.
	// +optional
	// +k8s:optional
	LastOutboundActivity *metav1.Time `json:"lastOutboundActivity,omitempty"`
	// message says what is wrong.
	// +optional
	// +k8s:optional
	// +k8s:maxLength=1024
	Message string `json:"message,omitempty"`
	// conditions are the conditions of the object: Accepted, ResolvedRefs, Programmed, Ready.
	// +optional
	// +k8s:optional
	// +listType=map
	// +listMapKey=type
	// +patchStrategy=merge
	// +patchMergeKey=type
	Conditions []metav1.Condition `json:"conditions,omitempty" patchStrategy:"merge" patchMergeKey:"type"`
}

// GatewayOwner identifies the gateway of a record, and its namespace, so that a gateway of the same name that comes later is another one.
type GatewayOwner struct {
	// namespaceUid is the UID of the namespace.
	// +optional
	// +k8s:optional
	NamespaceUID types.UID `json:"namespaceUid,omitempty"`
	// gatewayName is the name of the gateway.
	// +required
	// +k8s:required
	// +k8s:maxLength=253
	GatewayName string `json:"gatewayName"`
	// gatewayUid is its UID.
	// +required
	// +k8s:required
	GatewayUID types.UID `json:"gatewayUid"`
	// gatewayGeneration is its generation when the record was made.
	// +optional
	GatewayGeneration int64 `json:"gatewayGeneration,omitempty"`
}
