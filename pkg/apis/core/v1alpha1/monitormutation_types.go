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

// MonitorMutation is something that a monitor writes on the code host. It is stored before the code host is asked.
type MonitorMutation struct {
	metav1.TypeMeta `json:",inline"`
	// metadata is the standard object metadata.
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`
	// spec is what is written. It never changes.
	// +required
	Spec MonitorMutationSpec `json:"spec"`
	// status is what became of it.
	// +optional
	Status MonitorMutationStatus `json:"status,omitempty"`
}

// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object

// MonitorMutationList is a list of mutations of monitors.
type MonitorMutationList struct {
	metav1.TypeMeta `json:",inline"`
	// metadata is the standard list metadata.
	// +optional
	metav1.ListMeta `json:"metadata,omitempty"`
	// items are the mutations of monitors.
	Items []MonitorMutation `json:"items"`
}

// MonitorOperation is what is written on the code host.
// +enum
// +k8s:enum
type MonitorOperation string

// Values of MonitorOperation.
const (
	MonitorPostReview            MonitorOperation = "post_review"
	MonitorPostComment           MonitorOperation = "post_comment"
	MonitorRemoveLabel           MonitorOperation = "remove_label"
	MonitorMergePullRequest      MonitorOperation = "merge"
	MonitorUpdateBranchOperation MonitorOperation = "update_branch"
)

// MonitorMutationSpec is what is written on the code host.
type MonitorMutationSpec struct {
	// monitorName is the monitor.
	// +required
	// +k8s:required
	// +k8s:maxLength=253
	MonitorName string `json:"monitorName"`
	// monitorUID is the identity of the monitor.
	// +required
	// +k8s:required
	MonitorUID types.UID `json:"monitorUID"`
	// targetKind is pull_request or issue.
	// +required
	// +k8s:required
	TargetKind MonitorTargetKind `json:"targetKind"`
	// number is the number of the pull request or issue.
	// +required
	// +k8s:required
	// +k8s:minimum=1
	Number int64 `json:"number"`
	// operation is what is done.
	// +required
	// +k8s:required
	Operation MonitorOperation `json:"operation"`
	// headSHA is the head that it is about.
	// +optional
	// +k8s:optional
	// +k8s:maxLength=64
	HeadSHA string `json:"headSHA,omitempty"`
	// label is the label that is removed.
	// +optional
	// +k8s:optional
	// +k8s:maxLength=256
	Label string `json:"label,omitempty"`
	// workAction is the MonitorWorkAction that it belongs to.
	// +optional
	// +k8s:optional
	// +k8s:maxLength=253
	WorkAction string `json:"workAction,omitempty"`
	// command is the MonitorCommand that it belongs to.
	// +optional
	// +k8s:optional
	// +k8s:maxLength=253
	Command string `json:"command,omitempty"`
}

// MonitorMutationStatus is what became of a mutation.
type MonitorMutationStatus struct {
	// state is started, succeeded, skipped or failed.
	// +optional
	// +k8s:optional
	State MonitorPublishPhase `json:"state,omitempty"`
	// reason says why in one word.
	// +optional
	// +k8s:optional
	// +k8s:maxLength=64
	Reason string `json:"reason,omitempty"`
	// message says so for people.
	// +optional
	// +k8s:optional
	// +k8s:maxLength=1024
	Message string `json:"message,omitempty"`
	// url is the page of what was written.
	// +optional
	// +k8s:optional
	// +k8s:maxLength=2048
	URL string `json:"url,omitempty"`
	// sha is the commit that came of it.
	// +optional
	// +k8s:optional
	// +k8s:maxLength=64
	SHA string `json:"sha,omitempty"`
	// attempts is how often the code host was asked.
	// +optional
	Attempts int32 `json:"attempts,omitempty"`
	// nextAttemptAt is when it is asked again.
	// +optional
	// +k8s:optional
	NextAttemptAt *metav1.Time `json:"nextAttemptAt,omitempty"`
	// completedAt is when it was done.
	// +optional
	// +k8s:optional
	CompletedAt *metav1.Time `json:"completedAt,omitempty"`
}
