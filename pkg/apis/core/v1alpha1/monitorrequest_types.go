// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object

// MonitorRunRequest asks a monitor for a run now. It is created on repositorymonitors/runs, and the answer is the MonitorRun. While a run of
// the monitor is active, it is refused (409).
type MonitorRunRequest struct {
	metav1.TypeMeta `json:",inline"`
	// metadata holds the name and the namespace of the monitor in an answer. In a create it is not used.
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`
	// targetKind is pull_request or issue; empty for all that the monitor looks after.
	// +optional
	// +k8s:optional
	TargetKind MonitorTargetKind `json:"targetKind,omitempty"`
	// targetNumber is the number of the one that is to be looked at; it needs targetKind.
	// +optional
	// +k8s:optional
	// +k8s:minimum=0
	TargetNumber int64 `json:"targetNumber,omitempty"`
	// targetSHA is the head of a pull request that the run is for.
	// +optional
	// +k8s:optional
	// +k8s:maxLength=64
	TargetSHA string `json:"targetSHA,omitempty"`
}

// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object

// MonitorCommandRequest asks a monitor for something about one pull request or issue. It is created on repositorymonitors/commands, and the
// answer is the MonitorCommand.
type MonitorCommandRequest struct {
	metav1.TypeMeta `json:",inline"`
	// metadata holds the name and the namespace of the monitor in an answer. In a create it is not used.
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`
	// targetKind is pull_request or issue.
	// +required
	// +k8s:required
	TargetKind MonitorTargetKind `json:"targetKind"`
	// number is the number of the pull request or issue.
	// +required
	// +k8s:required
	// +k8s:minimum=1
	Number int64 `json:"number"`
	// intent is what is asked for.
	// +required
	// +k8s:required
	Intent MonitorIntent `json:"intent"`
	// targetSHA is the head that it is for. The commands review, fix, fix_ci, update_branch and automerge need it.
	// +optional
	// +k8s:optional
	// +k8s:maxLength=64
	TargetSHA string `json:"targetSHA,omitempty"`
}

// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object

// MonitorCodeHostCall is a call on the code host of a monitor. A controller creates one on repositorymonitors/codehost, and the server
// carries it out with a credential of the monitor, which the controller does not have. It is answered when the code host has answered, and
// not stored. A call that writes and is repeated with the same callId, operation and arguments is not made twice.
type MonitorCodeHostCall struct {
	metav1.TypeMeta `json:",inline"`
	// metadata holds the name and the namespace of the monitor in an answer. In a create it is not used.
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`
	// operation is what is asked for: a tool of runs, such as post_review_comment, or an operation of monitors.
	// +required
	// +k8s:required
	// +k8s:maxLength=64
	Operation string `json:"operation"`
	// callId identifies the call among those of the monitor.
	// +required
	// +k8s:required
	// +k8s:maxLength=256
	CallID string `json:"callId"`
	// arguments is the argument object of the operation.
	// +required
	// +k8s:opaqueType
	// +patchStrategy=replace
	Arguments apiextensionsv1.JSON `json:"arguments" patchStrategy:"replace"`
	// headSHA is the commit that the caller has seen as the head of the pull request. A review, or a merge, of another head is not made.
	// +optional
	// +k8s:optional
	// +k8s:maxLength=64
	HeadSHA string `json:"headSHA,omitempty"`
	// result is what the operation returns. The server sets it, or failure.
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
