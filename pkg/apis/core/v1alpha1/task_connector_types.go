// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object

// TaskConnectorCall is a call of a tool of a ConnectorProvider. The worker of a task creates one on tasks/connectortool, and the server
// makes the request with the linked account of the person who asked for the task. The worker gets the answer, and no token. The call itself
// is not stored. A tool of class write needs an approval: its call without approvalId sends nothing and reserves a ToolEffect, for which a
// person is asked; with the approvalId the call is made, once.
type TaskConnectorCall struct {
	metav1.TypeMeta `json:",inline"`
	// metadata holds the name and the namespace of the task in an answer. In a create it is not used.
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`
	// toolName is the tool, such as list_files.
	// +required
	// +k8s:required
	// +k8s:maxLength=64
	ToolName string `json:"toolName"`
	// callId is the id that the model gave to the call.
	// +optional
	// +k8s:optional
	// +k8s:maxLength=256
	CallID string `json:"callId,omitempty"`
	// arguments is the argument object of the tool; {} if it is left out.
	// +optional
	// +k8s:optional
	// +k8s:opaqueType
	// +patchStrategy=replace
	Arguments *apiextensionsv1.JSON `json:"arguments,omitempty" patchStrategy:"replace"`
	// approvalId is the approval of the call, by 64 hexadecimal digits.
	// +optional
	// +k8s:optional
	// +k8s:maxLength=64
	ApprovalID string `json:"approvalId,omitempty"`
	// effect is the name of the ToolEffect of a call of class write. The server sets it.
	// +optional
	// +k8s:optional
	// +k8s:maxLength=253
	Effect string `json:"effect,omitempty"`
	// result is what the tool answered. The server sets it, or failure, unless it only reserved an effect.
	// +optional
	// +k8s:optional
	// +k8s:opaqueType
	// +patchStrategy=replace
	Result *apiextensionsv1.JSON `json:"result,omitempty" patchStrategy:"replace"`
	// replayed is set if the result is that of a request that was made before, and no further one was made.
	// +optional
	Replayed bool `json:"replayed,omitempty"`
	// failure says why the call has no result. The server sets it.
	// +optional
	// +k8s:optional
	Failure *TaskConnectorFailure `json:"failure,omitempty"`
}

// TaskConnectorFailure is why a call of a tool of a ConnectorProvider has no result.
type TaskConnectorFailure struct {
	// reason is the kind of failure.
	Reason TaskConnectorFailureReason `json:"reason"`
	// message says what was wrong, for the model and for people.
	Message string `json:"message"`
	// status is the HTTP status of the provider's answer; absent if there was none.
	// +optional
	Status int32 `json:"status,omitempty"`
	// retryAfterSeconds is when the provider answers again, in seconds from now. It is absent if the provider did not say.
	// +optional
	RetryAfterSeconds int64 `json:"retryAfterSeconds,omitempty"`
}

// TaskConnectorFailureReason is a kind of failure of a call of a tool of a ConnectorProvider.
// +enum
// +k8s:enum
type TaskConnectorFailureReason string

// Kinds of failures.
const (
	// ConnectorInvalidArguments means that the arguments do not satisfy the tool.
	ConnectorInvalidArguments TaskConnectorFailureReason = "InvalidArguments"
	// ConnectorDenied means that the task may not make the call, or that the provider does not let the account make it.
	ConnectorDenied TaskConnectorFailureReason = "Denied"
	// ConnectorConsentRequired means that the person who asked for the task has to connect the account, or to give a further consent.
	ConnectorConsentRequired TaskConnectorFailureReason = "ConsentRequired"
	// ConnectorNotFound means that the provider has no such thing, or hides it from the account.
	ConnectorNotFound TaskConnectorFailureReason = "NotFound"
	// ConnectorRefused means that the provider refused the call.
	ConnectorRefused TaskConnectorFailureReason = "Refused"
	// ConnectorRateLimited means that the provider answers no requests for some time.
	ConnectorRateLimited TaskConnectorFailureReason = "RateLimited"
	// ConnectorUnavailable means that the call was not made, or changed nothing, and may succeed later.
	ConnectorUnavailable TaskConnectorFailureReason = "Unavailable"
	// ConnectorOutcomeUnknown means that the request was sent, and nobody knows whether it was carried out.
	ConnectorOutcomeUnknown TaskConnectorFailureReason = "OutcomeUnknown"
)
