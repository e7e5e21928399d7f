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

// ToolEffect is one request that changes something elsewhere with the linked account of a person. The server reserves it before anybody is
// asked to approve the call, claims it once when the call was approved, and never sends it again. Only the server writes it.
type ToolEffect struct {
	metav1.TypeMeta `json:",inline"`
	// metadata is the standard object metadata. The name is effect- and 40 hexadecimal digits, of a digest of the spec.
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`
	// spec is what is done, and with what. It never changes.
	// +required
	Spec ToolEffectSpec `json:"spec"`
	// status is how far it got.
	// +optional
	Status ToolEffectStatus `json:"status,omitempty"`
}

// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object

// ToolEffectList is a list of effects of tools.
type ToolEffectList struct {
	metav1.TypeMeta `json:",inline"`
	// metadata is the standard list metadata.
	// +optional
	metav1.ListMeta `json:"metadata,omitempty"`
	// items are the effects of tools.
	Items []ToolEffect `json:"items"`
}

// ToolEffectSpec is what is done, and with what.
type ToolEffectSpec struct {
	// taskName is the task whose run makes the call.
	// +required
	// +k8s:required
	// +k8s:maxLength=253
	TaskName string `json:"taskName"`
	// taskUID is the UID of the task.
	// +required
	TaskUID types.UID `json:"taskUID"`
	// attempt is the attempt of the task that reserved it.
	// +optional
	Attempt int32 `json:"attempt,omitempty"`
	// callId is the id that the model gave to the call.
	// +optional
	// +k8s:optional
	// +k8s:maxLength=256
	CallID string `json:"callId,omitempty"`
	// tool is the name of the tool.
	// +required
	// +k8s:required
	// +k8s:maxLength=64
	Tool string `json:"tool"`
	// connectorProvider is the ConnectorProvider that declares the tool.
	// +required
	// +k8s:required
	// +k8s:maxLength=63
	ConnectorProvider string `json:"connectorProvider"`
	// connection is the account that is used.
	// +required
	Connection ToolEffectConnection `json:"connection"`
	// toolDigest is the SHA-256 of the definition of the tool, in hexadecimal.
	// +required
	ToolDigest string `json:"toolDigest"`
	// policyDigest is the SHA-256 of how the credential is sent, in hexadecimal.
	// +required
	PolicyDigest string `json:"policyDigest"`
	// requestDigest is the SHA-256 of the arguments as canonical JSON, in hexadecimal.
	// +required
	RequestDigest string `json:"requestDigest"`
	// timeoutSeconds is how long the request may take, and how long a claim is held.
	// +required
	TimeoutSeconds int32 `json:"timeoutSeconds"`
	// createdAt is when it was reserved.
	// +required
	CreatedAt metav1.MicroTime `json:"createdAt"`
}

// ToolEffectConnection identifies a connection as it was when an effect was reserved.
type ToolEffectConnection struct {
	// name is the Connection.
	// +required
	Name string `json:"name"`
	// uid is its UID.
	// +required
	UID types.UID `json:"uid"`
	// generation is that of its spec.
	// +required
	Generation int64 `json:"generation"`
	// grantSequence is the consent that is relied on.
	// +required
	GrantSequence int64 `json:"grantSequence"`
}

// ToolEffectState is how far an effect got.
// +enum
// +k8s:enum
type ToolEffectState string

// Values of ToolEffectState. The last three are ends.
const (
	// ToolEffectPending means that nothing was sent.
	ToolEffectPending ToolEffectState = "Pending"
	// ToolEffectInFlight means that it was claimed: the request is being sent.
	ToolEffectInFlight ToolEffectState = "InFlight"
	// ToolEffectSucceeded means that the provider answered with success.
	ToolEffectSucceeded ToolEffectState = "Succeeded"
	// ToolEffectFailed means that the provider refused the request, or that it was not sent and will not be.
	ToolEffectFailed ToolEffectState = "Failed"
	// ToolEffectOutcomeUnknown means that the request may have been carried out.
	ToolEffectOutcomeUnknown ToolEffectState = "OutcomeUnknown"
)

// ToolEffectStatus is how far an effect got.
type ToolEffectStatus struct {
	// state is where the effect is.
	// +optional
	// +k8s:optional
	State ToolEffectState `json:"state,omitempty"`
	// approvalId is the approval that was spent on it.
	// +optional
	ApprovalID string `json:"approvalId,omitempty"`
	// attempts is how often it was claimed. A claim that is handed back, because nothing was sent, is counted, too.
	// +optional
	Attempts int32 `json:"attempts,omitempty"`
	// leaseOwner is the server that sends the request.
	// +optional
	// +k8s:optional
	// +k8s:maxLength=256
	LeaseOwner string `json:"leaseOwner,omitempty"`
	// leaseExpiresAt is when that has to be over.
	// +optional
	// +k8s:optional
	LeaseExpiresAt *metav1.Time `json:"leaseExpiresAt,omitempty"`
	// responseStatus is the HTTP status of the answer; 0 without one.
	// +optional
	ResponseStatus int32 `json:"responseStatus,omitempty"`
	// responseDigest is the SHA-256 of what the tool returned, in hexadecimal.
	// +optional
	ResponseDigest string `json:"responseDigest,omitempty"`
	// responseBytes is its length. What is at most 256 KiB long is kept with the task, and returned again instead of a second request.
	// +optional
	ResponseBytes int64 `json:"responseBytes,omitempty"`
	// message says why it failed, or why its outcome is unknown.
	// +optional
	// +k8s:optional
	// +k8s:maxLength=1024
	Message string `json:"message,omitempty"`
	// updatedAt is when the state last changed.
	// +optional
	// +k8s:optional
	UpdatedAt *metav1.MicroTime `json:"updatedAt,omitempty"`
}
