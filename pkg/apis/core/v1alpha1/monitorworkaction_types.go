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

// MonitorWorkAction is a piece of work on one pull request or issue: a task of an agent, and what is done with its result.
type MonitorWorkAction struct {
	metav1.TypeMeta `json:",inline"`
	// metadata is the standard object metadata.
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`
	// spec is what is to be done. It never changes.
	// +required
	Spec MonitorWorkActionSpec `json:"spec"`
	// status is how far it is.
	// +optional
	Status MonitorWorkActionStatus `json:"status,omitempty"`
}

// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object

// MonitorWorkActionList is a list of work of monitors.
type MonitorWorkActionList struct {
	metav1.TypeMeta `json:",inline"`
	// metadata is the standard list metadata.
	// +optional
	metav1.ListMeta `json:"metadata,omitempty"`
	// items are the work of monitors.
	Items []MonitorWorkAction `json:"items"`
}

// MonitorWorkActionSpec is what is to be done.
type MonitorWorkActionSpec struct {
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
	// desiredAction is what is to be done.
	// +required
	// +k8s:required
	DesiredAction MonitorIntent `json:"desiredAction"`
	// headSHA is the head that it is about.
	// +optional
	// +k8s:optional
	// +k8s:maxLength=64
	HeadSHA string `json:"headSHA,omitempty"`
	// attempt is how often the same was tried, with this one.
	// +required
	// +k8s:required
	// +k8s:minimum=1
	Attempt int32 `json:"attempt"`
	// run is the MonitorRun that found it to be done.
	// +optional
	// +k8s:optional
	// +k8s:maxLength=253
	Run string `json:"run,omitempty"`
	// command is the MonitorCommand that asked for it.
	// +optional
	// +k8s:optional
	// +k8s:maxLength=253
	Command string `json:"command,omitempty"`
}

// MonitorWorkActionState is how far a piece of work is.
// +enum
// +k8s:enum
type MonitorWorkActionState string

// Values of MonitorWorkActionState.
const (
	MonitorWorkQueued       MonitorWorkActionState = "queued"
	MonitorWorkRunning      MonitorWorkActionState = "running"
	MonitorWorkSucceeded    MonitorWorkActionState = "succeeded"
	MonitorWorkFailed       MonitorWorkActionState = "failed"
	MonitorWorkBlocked      MonitorWorkActionState = "blocked"
	MonitorWorkCancelled    MonitorWorkActionState = "cancelled"
	MonitorWorkRetryPending MonitorWorkActionState = "retry_pending"
)

// MonitorWorkActionStatus is how far a piece of work is.
type MonitorWorkActionStatus struct {
	// state is queued, running, succeeded, failed, blocked, cancelled or retry_pending.
	// +optional
	// +k8s:optional
	State MonitorWorkActionState `json:"state,omitempty"`
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
	// taskName is the task of the agent.
	// +optional
	// +k8s:optional
	// +k8s:maxLength=253
	TaskName string `json:"taskName,omitempty"`
	// taskUID is its identity.
	// +optional
	TaskUID types.UID `json:"taskUID,omitempty"`
	// verdict is what its result came to.
	// +optional
	// +k8s:optional
	// +k8s:maxLength=64
	Verdict string `json:"verdict,omitempty"`
	// pullRequest is the number of the pull request that came of it.
	// +optional
	PullRequest int64 `json:"pullRequest,omitempty"`
	// attempts is how often it was begun.
	// +optional
	Attempts int32 `json:"attempts,omitempty"`
	// nextAttemptAt is when it is tried again.
	// +optional
	// +k8s:optional
	NextAttemptAt *metav1.Time `json:"nextAttemptAt,omitempty"`
	// startedAt is when it was begun.
	// +optional
	// +k8s:optional
	StartedAt *metav1.Time `json:"startedAt,omitempty"`
	// completedAt is when it ended.
	// +optional
	// +k8s:optional
	CompletedAt *metav1.Time `json:"completedAt,omitempty"`
}
