// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object

// TaskCodeHostCall is a call of one of the tools for pull requests and issues. A worker creates one on tasks/codehost, and the
// server carries it out on the code host of the task's repository, with a credential that the worker does not have. It is answered
// when the code host has answered, and not stored. A call that is repeated with the same callId, tool and arguments in the same
// attempt of the task is not made twice: the server looks for what it made before.
type TaskCodeHostCall struct {
	metav1.TypeMeta `json:",inline"`
	// metadata holds the name and the namespace of the task in an answer. In a create it is not used.
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`
	// toolName is the tool, such as post_review_comment.
	// +required
	// +k8s:required
	// +k8s:maxLength=64
	ToolName string `json:"toolName"`
	// callId is the id that the model gave to the call.
	// +required
	// +k8s:required
	// +k8s:maxLength=256
	CallID string `json:"callId"`
	// arguments is the argument object of the tool.
	// +required
	// +k8s:opaqueType
	// +patchStrategy=replace
	Arguments apiextensionsv1.JSON `json:"arguments" patchStrategy:"replace"`
	// headSHA is the commit that the run has seen as the head of the pull request. A review, or a merge, of another head is not made.
	// Without it, the head that the server finds first is the one.
	// +optional
	// +k8s:optional
	// +k8s:maxLength=64
	HeadSHA string `json:"headSHA,omitempty"`
	// result is what the tool returns. The server sets it, or failure.
	// +optional
	// +k8s:optional
	// +k8s:opaqueType
	// +patchStrategy=replace
	Result *apiextensionsv1.JSON `json:"result,omitempty" patchStrategy:"replace"`
	// failure says why the call could not be made. The server sets it, or result.
	// +optional
	// +k8s:optional
	Failure *TaskCodeHostFailure `json:"failure,omitempty"`
}

// TaskCodeHostFailure is why a call on a code host could not be made.
type TaskCodeHostFailure struct {
	// reason is the kind of failure.
	Reason TaskCodeHostFailureReason `json:"reason"`
	// message says what was wrong, for the model and for people. It contains nothing that the code host sent.
	Message string `json:"message"`
	// retryAfterSeconds is when the code host answers again, in seconds from now. It is absent if the code host did not say.
	// +optional
	RetryAfterSeconds int64 `json:"retryAfterSeconds,omitempty"`
}

// TaskCodeHostFailureReason is a kind of failure of a call on a code host.
// +enum
// +k8s:enum
type TaskCodeHostFailureReason string

// Kinds of failures.
const (
	// CodeHostInvalidArguments means that the call cannot be made with these arguments.
	CodeHostInvalidArguments TaskCodeHostFailureReason = "InvalidArguments"
	// CodeHostDenied means that the task may not make the call, or that the code host does not let its credential make it.
	CodeHostDenied TaskCodeHostFailureReason = "Denied"
	// CodeHostNotFound means that the code host has no such thing, or hides it from the credential.
	CodeHostNotFound TaskCodeHostFailureReason = "NotFound"
	// CodeHostRefused means that the code host refuses what was asked for.
	CodeHostRefused TaskCodeHostFailureReason = "Refused"
	// CodeHostRateLimited means that the code host answers no more requests for some time. Nothing was changed.
	CodeHostRateLimited TaskCodeHostFailureReason = "RateLimited"
	// CodeHostUnavailable means that the code host cannot be reached. Nothing was changed.
	CodeHostUnavailable TaskCodeHostFailureReason = "Unavailable"
	// CodeHostOutcomeUnknown means that what was asked for may have been done: the answer did not come, and a look afterwards did not
	// show it.
	CodeHostOutcomeUnknown TaskCodeHostFailureReason = "OutcomeUnknown"
)
