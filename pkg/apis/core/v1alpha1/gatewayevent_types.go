// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// +genclient
// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object
// +k8s:supportsSubresource="/status"

// GatewayEvent is something that the adapter of a gateway delivered: what somebody wrote, where it belongs, and what became of it.
type GatewayEvent struct {
	metav1.TypeMeta `json:",inline"`
	// metadata is the standard object metadata. The name is gev- and 40 hexadecimal digits.
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`
	// spec is what the adapter said. It never changes.
	// +required
	Spec GatewayEventSpec `json:"spec"`
	// status is what became of it.
	// +optional
	Status GatewayEventStatus `json:"status,omitempty"`
}

// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object

// GatewayEventList is a list of events of gateways.
type GatewayEventList struct {
	metav1.TypeMeta `json:",inline"`
	// metadata is the standard list metadata.
	// +optional
	metav1.ListMeta `json:"metadata,omitempty"`
	// items are the events of gateways.
	Items []GatewayEvent `json:"items"`
}

// GatewayEventSpec is what an adapter said. All texts in it were written by anybody, and are without what looks like a secret.
type GatewayEventSpec struct {
	GatewayOwner `json:",inline"`
	// externalEventId is the id that the adapter gave to the event.
	// +required
	// +k8s:required
	ExternalEventID string `json:"externalEventId"`
	// payloadSHA256 is the digest of what the event says, in lower-case hexadecimal digits. The same event with another digest is a
	// conflict.
	// +required
	// +k8s:required
	// +k8s:maxLength=64
	PayloadSHA256 string `json:"payloadSHA256"`
	// protocolVersion is the protocol of the event.
	// +required
	// +k8s:required
	ProtocolVersion GatewayContract `json:"protocolVersion"`
	// eventType is what kind of event it is: text.
	// +required
	// +k8s:required
	// +k8s:maxLength=64
	EventType string `json:"eventType"`
	// accountId is the account of the chat system.
	// +required
	// +k8s:required
	AccountID string `json:"accountId"`
	// contextId is the place within the account.
	// +required
	// +k8s:required
	ContextID string `json:"contextId"`
	// threadId is the thread within the context.
	// +optional
	ThreadID string `json:"threadId,omitempty"`
	// senderId is who wrote.
	// +required
	// +k8s:required
	SenderID string `json:"senderId"`
	// senderDisplayName is how the sender is shown. Nothing is decided by it.
	// +optional
	SenderDisplayName string `json:"senderDisplayName,omitempty"`
	// text is what the sender wrote.
	// +required
	Text string `json:"text"`
	// replyTarget is what the adapter needs to answer, in its own words.
	// +optional
	ReplyTarget string `json:"replyTarget,omitempty"`
	// metadata is what else the adapter said.
	// +optional
	Metadata map[string]string `json:"metadata,omitempty"`
	// occurredAt is when the sender wrote, as the adapter says.
	// +optional
	// +k8s:optional
	OccurredAt *metav1.MicroTime `json:"occurredAt,omitempty"`
	// receivedAt is when the adapter got it, as the adapter says.
	// +optional
	// +k8s:optional
	ReceivedAt *metav1.MicroTime `json:"receivedAt,omitempty"`
	// createdAt is when it was stored.
	// +required
	CreatedAt metav1.MicroTime `json:"createdAt"`
}

// GatewayEventState is what became of an event.
// +enum
// +k8s:enum
type GatewayEventState string

// Values of GatewayEventState.
const (
	// GatewayEventAccepted is passed at intake; it is not stored.
	GatewayEventAccepted GatewayEventState = "Accepted"
	// GatewayEventQueued means that it waits for its turn in its session.
	GatewayEventQueued GatewayEventState = "Queued"
	// GatewayEventDispatching means that a controller makes its task.
	GatewayEventDispatching GatewayEventState = "Dispatching"
	// GatewayEventTaskCreated means that its task runs.
	GatewayEventTaskCreated GatewayEventState = "TaskCreated"
	// GatewayEventCompleted means that its answer is a delivery.
	GatewayEventCompleted GatewayEventState = "Completed"
	// GatewayEventRejected means that no binding, or more than one, is for it, or that its sender may not write.
	GatewayEventRejected GatewayEventState = "Rejected"
	// GatewayEventDeadLettered means that too many events waited in its session, or that nobody could be told that it expired.
	GatewayEventDeadLettered GatewayEventState = "DeadLettered"
	// GatewayEventExpired means that it was not answered in time.
	GatewayEventExpired GatewayEventState = "Expired"
)

// GatewayEventStatus is what became of an event.
type GatewayEventStatus struct {
	// state is where the event is.
	// +optional
	// +k8s:optional
	State GatewayEventState `json:"state,omitempty"`
	// reason says why in one word.
	// +optional
	// +k8s:optional
	// +k8s:maxLength=64
	Reason string `json:"reason,omitempty"`
	// stateMessage says so for people.
	// +optional
	// +k8s:optional
	// +k8s:maxLength=1024
	StateMessage string `json:"stateMessage,omitempty"`
	// bindingName is the GatewayBinding that is for the event, and bindingUid and bindingGeneration are those of that object then.
	// +optional
	BindingName string `json:"bindingName,omitempty"`
	// bindingUid is the UID of the binding.
	// +optional
	BindingUID types.UID `json:"bindingUid,omitempty"`
	// bindingGeneration is the generation of the binding.
	// +optional
	BindingGeneration int64 `json:"bindingGeneration,omitempty"`
	// agentName is the Agent that answers.
	// +optional
	AgentName string `json:"agentName,omitempty"`
	// agentUid is the UID of the Agent.
	// +optional
	AgentUID types.UID `json:"agentUid,omitempty"`
	// sessionName is the session that has what the sender wrote.
	// +optional
	SessionName string `json:"sessionName,omitempty"`
	// transcriptOrder is the place of the event in its session: the order of its message. It is decided in the commit that accepts the
	// event.
	// +optional
	TranscriptOrder int64 `json:"transcriptOrder,omitempty"`
	// taskName is the task that answers.
	// +optional
	TaskName string `json:"taskName,omitempty"`
	// taskUid is its UID.
	// +optional
	TaskUID types.UID `json:"taskUid,omitempty"`
	// deliveryId is the delivery of the answer.
	// +optional
	DeliveryID string `json:"deliveryId,omitempty"`
	// providerMessageId is the id that the chat system gave to the answer.
	// +optional
	ProviderMessageID string `json:"providerMessageId,omitempty"`
	// attemptCount is how often a controller tried to make the task and could not.
	// +optional
	AttemptCount int32 `json:"attemptCount,omitempty"`
	// nextAttemptAt is when it tries again.
	// +optional
	// +k8s:optional
	NextAttemptAt *metav1.Time `json:"nextAttemptAt,omitempty"`
	// expiresAt is when the event expires.
	// +optional
	// +k8s:optional
	ExpiresAt *metav1.Time `json:"expiresAt,omitempty"`
	// leaseHolder is the controller that makes the task.
	// +optional
	// +k8s:optional
	// +k8s:maxLength=256
	LeaseHolder string `json:"leaseHolder,omitempty"`
	// leaseUntil is when another one may.
	// +optional
	// +k8s:optional
	LeaseUntil *metav1.Time `json:"leaseUntil,omitempty"`
	// duplicates is how often the same event was delivered again.
	// +optional
	Duplicates int32 `json:"duplicates,omitempty"`
	// mismatches is how often it was delivered again and said something else, which was refused.
	// +optional
	Mismatches int32 `json:"mismatches,omitempty"`
	// replays is how often a person had it routed again.
	// +optional
	Replays int32 `json:"replays,omitempty"`
	// replayedBy is the user who did so last.
	// +optional
	// +k8s:optional
	// +k8s:maxLength=512
	ReplayedBy string `json:"replayedBy,omitempty"`
	// decision is set for an event that decides on an approval instead of asking the Agent.
	// +optional
	// +k8s:optional
	Decision *GatewayEventDecision `json:"decision,omitempty"`
	// updatedAt is when the state last changed.
	// +optional
	// +k8s:optional
	UpdatedAt *metav1.MicroTime `json:"updatedAt,omitempty"`
	// completedAt is when nothing was left to do.
	// +optional
	// +k8s:optional
	CompletedAt *metav1.MicroTime `json:"completedAt,omitempty"`
}

// GatewayEventDecision is what an event decides about an approval.
type GatewayEventDecision struct {
	// decision is approve or decline.
	// +required
	// +k8s:required
	// +k8s:maxLength=16
	Decision string `json:"decision"`
	// code is what the sender wrote to say which approval.
	// +required
	// +k8s:required
	// +k8s:maxLength=64
	Code string `json:"code"`
	// approval is the approval that it is about.
	// +optional
	// +k8s:optional
	// +k8s:maxLength=253
	Approval string `json:"approval,omitempty"`
	// subject is the user in whose name it was decided.
	// +optional
	// +k8s:optional
	// +k8s:maxLength=512
	Subject string `json:"subject,omitempty"`
	// accepted is set when the decision counts.
	// +optional
	Accepted bool `json:"accepted,omitempty"`
}
