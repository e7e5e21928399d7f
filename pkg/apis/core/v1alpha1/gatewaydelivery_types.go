// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// +genclient
// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object
// +k8s:supportsSubresource="/status"

// GatewayDelivery is a text on its way to a chat system: an answer of an agent, or why there is none. Deliveries of a session are sent one
// after the other.
type GatewayDelivery struct {
	metav1.TypeMeta `json:",inline"`
	// metadata is the standard object metadata. The name is gdl- and 40 hexadecimal digits.
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`
	// spec is what is delivered. It never changes.
	// +required
	Spec GatewayDeliverySpec `json:"spec"`
	// status is how far it got.
	// +optional
	Status GatewayDeliveryStatus `json:"status,omitempty"`
}

// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object

// GatewayDeliveryList is a list of deliveries of gateways.
type GatewayDeliveryList struct {
	metav1.TypeMeta `json:",inline"`
	// metadata is the standard list metadata.
	// +optional
	metav1.ListMeta `json:"metadata,omitempty"`
	// items are the deliveries of gateways.
	Items []GatewayDelivery `json:"items"`
}

// GatewayDeliveryKind is what a delivery says.
// +enum
// +k8s:enum
type GatewayDeliveryKind string

// Values of GatewayDeliveryKind.
const (
	// GatewayDeliveryFinal is the answer of the Agent.
	GatewayDeliveryFinal GatewayDeliveryKind = "final"
	// GatewayDeliveryError says that there is no answer, and why.
	GatewayDeliveryError GatewayDeliveryKind = "error"
	// GatewayDeliveryInterim is said while the task still runs.
	GatewayDeliveryInterim GatewayDeliveryKind = "interim"
)

// GatewayDeliverySpec is what is delivered.
type GatewayDeliverySpec struct {
	GatewayOwner `json:",inline"`
	// idempotencyId is what the adapter recognises a repetition by.
	// +required
	// +k8s:required
	// +k8s:maxLength=128
	IdempotencyID string `json:"idempotencyId"`
	// bindingName is the GatewayBinding of the event.
	// +optional
	BindingName string `json:"bindingName,omitempty"`
	// eventId is the event that is answered.
	// +required
	// +k8s:required
	// +k8s:maxLength=253
	EventID string `json:"eventId"`
	// taskName is the task that answers.
	// +optional
	TaskName string `json:"taskName,omitempty"`
	// sessionName is the session of the event.
	// +required
	// +k8s:required
	// +k8s:maxLength=253
	SessionName string `json:"sessionName"`
	// sequence is the place among the deliveries of the session: the transcriptOrder of the event. Of one event, interim texts come first.
	// +optional
	Sequence int64 `json:"sequence,omitempty"`
	// part is the place among the interim texts of an event, from 1; 0 for an answer. Of two with the same part, the one that was written first
	// comes first.
	// +optional
	Part int32 `json:"part,omitempty"`
	// kind is final, error or interim.
	// +required
	// +k8s:required
	Kind GatewayDeliveryKind `json:"kind"`
	// accountId is that of the event.
	// +required
	// +k8s:required
	AccountID string `json:"accountId"`
	// contextId is that of the event.
	// +required
	// +k8s:required
	ContextID string `json:"contextId"`
	// threadId is that of the event.
	// +optional
	ThreadID string `json:"threadId,omitempty"`
	// replyTarget is that of the event.
	// +optional
	ReplyTarget string `json:"replyTarget,omitempty"`
	// text is what is said.
	// +required
	Text string `json:"text"`
	// metadata is that of the gateway.
	// +optional
	Metadata map[string]string `json:"metadata,omitempty"`
	// maxAttempts is how often it is sent before it is given up.
	// +optional
	MaxAttempts int32 `json:"maxAttempts,omitempty"`
	// createdAt is when it was written.
	// +required
	CreatedAt metav1.MicroTime `json:"createdAt"`
}

// GatewayDeliveryState is how far a delivery got.
// +enum
// +k8s:enum
type GatewayDeliveryState string

// Values of GatewayDeliveryState.
const (
	// GatewayDeliveryPending means that it was not sent yet.
	GatewayDeliveryPending GatewayDeliveryState = "Pending"
	// GatewayDeliverySending means that it is being sent.
	GatewayDeliverySending GatewayDeliveryState = "Sending"
	// GatewayDeliveryRetryScheduled means that it is sent again.
	GatewayDeliveryRetryScheduled GatewayDeliveryState = "RetryScheduled"
	// GatewayDeliveryDelivered means that the adapter says that it was delivered.
	GatewayDeliveryDelivered GatewayDeliveryState = "Delivered"
	// GatewayDeliveryFailed means that a person gave it up.
	GatewayDeliveryFailed GatewayDeliveryState = "Failed"
	// GatewayDeliveryDeadLettered means that the platform gave it up.
	GatewayDeliveryDeadLettered GatewayDeliveryState = "DeadLettered"
	// GatewayDeliveryExpired means that it was not delivered in time.
	GatewayDeliveryExpired GatewayDeliveryState = "Expired"
)

// GatewayDeliveryStatus is how far a delivery got.
type GatewayDeliveryStatus struct {
	// state is where the delivery is.
	// +optional
	// +k8s:optional
	State GatewayDeliveryState `json:"state,omitempty"`
	// reason says why in one word.
	// +optional
	// +k8s:optional
	// +k8s:maxLength=64
	Reason string `json:"reason,omitempty"`
	// attemptCount is how often something was sent, or may have been. An adapter that could not be reached was sent nothing.
	// +optional
	AttemptCount int32 `json:"attemptCount,omitempty"`
	// unreachedCount is how often the adapter could not be reached in a row.
	// +optional
	UnreachedCount int32 `json:"unreachedCount,omitempty"`
	// manualRetryCount is how often a person had it delivered again.
	// +optional
	ManualRetryCount int32 `json:"manualRetryCount,omitempty"`
	// retriedBy is the user who did so last.
	// +optional
	// +k8s:optional
	// +k8s:maxLength=512
	RetriedBy string `json:"retriedBy,omitempty"`
	// outcomeUnknown is set when it was sent and no answer came, so that it may have been posted.
	// +optional
	OutcomeUnknown bool `json:"outcomeUnknown,omitempty"`
	// late is set when it was sent with a line that says how late it is.
	// +optional
	Late bool `json:"late,omitempty"`
	// nextAttemptAt is when it is sent.
	// +optional
	// +k8s:optional
	NextAttemptAt *metav1.Time `json:"nextAttemptAt,omitempty"`
	// expiresAt is when it is not sent any more.
	// +optional
	// +k8s:optional
	ExpiresAt *metav1.Time `json:"expiresAt,omitempty"`
	// leaseHolder is the server that sends it.
	// +optional
	// +k8s:optional
	// +k8s:maxLength=256
	LeaseHolder string `json:"leaseHolder,omitempty"`
	// leaseUntil is when another one may.
	// +optional
	// +k8s:optional
	LeaseUntil *metav1.Time `json:"leaseUntil,omitempty"`
	// providerMessageId is the id that the chat system gave to it.
	// +optional
	// +k8s:optional
	// +k8s:maxLength=512
	ProviderMessageID string `json:"providerMessageId,omitempty"`
	// lastError is why the last attempt failed.
	// +optional
	// +k8s:optional
	// +k8s:maxLength=1024
	LastError string `json:"lastError,omitempty"`
	// updatedAt is when the state last changed.
	// +optional
	// +k8s:optional
	UpdatedAt *metav1.MicroTime `json:"updatedAt,omitempty"`
	// deliveredAt is when it was delivered.
	// +optional
	// +k8s:optional
	DeliveredAt *metav1.MicroTime `json:"deliveredAt,omitempty"`
	// recorded is set when its event, its task and its binding say that it was delivered.
	// +optional
	Recorded bool `json:"recorded,omitempty"`
}
