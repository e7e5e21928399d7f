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

// MonitorRun is one look of a monitor at its repository, or at one pull request or issue.
type MonitorRun struct {
	metav1.TypeMeta `json:",inline"`
	// metadata is the standard object metadata.
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`
	// spec is what is looked at, and why. It never changes.
	// +required
	Spec MonitorRunSpec `json:"spec"`
	// status is what came of it.
	// +optional
	Status MonitorRunStatus `json:"status,omitempty"`
}

// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object

// MonitorRunList is a list of runs of monitors.
type MonitorRunList struct {
	metav1.TypeMeta `json:",inline"`
	// metadata is the standard list metadata.
	// +optional
	metav1.ListMeta `json:"metadata,omitempty"`
	// items are the runs of monitors.
	Items []MonitorRun `json:"items"`
}

// MonitorRunTrigger is why a run was made.
// +enum
// +k8s:enum
type MonitorRunTrigger string

// Values of MonitorRunTrigger.
const (
	MonitorRunScheduled MonitorRunTrigger = "schedule"
	MonitorRunRequested MonitorRunTrigger = "request"
	MonitorRunDelivered MonitorRunTrigger = "webhook"
)

// MonitorRunSpec is what a run looks at, and why.
type MonitorRunSpec struct {
	// monitorName is the monitor.
	// +required
	// +k8s:required
	// +k8s:maxLength=253
	MonitorName string `json:"monitorName"`
	// monitorUID is the identity of the monitor.
	// +required
	// +k8s:required
	MonitorUID types.UID `json:"monitorUID"`
	// targetKind is pull_request or issue; empty for all that the monitor looks after.
	// +optional
	// +k8s:optional
	TargetKind MonitorTargetKind `json:"targetKind,omitempty"`
	// targetNumber is the number of the one that is looked at; 0 for all.
	// +optional
	// +k8s:optional
	// +k8s:minimum=0
	TargetNumber int64 `json:"targetNumber,omitempty"`
	// targetSHA is the head of the pull request that the run is about. Another head ends the run without any work.
	// +optional
	// +k8s:optional
	// +k8s:maxLength=64
	TargetSHA string `json:"targetSHA,omitempty"`
	// trigger is schedule, request or webhook.
	// +required
	// +k8s:required
	Trigger MonitorRunTrigger `json:"trigger"`
	// delivery is the CodeHostDelivery that caused the run, NAMESPACE/NAME.
	// +optional
	// +k8s:optional
	// +k8s:maxLength=512
	Delivery string `json:"delivery,omitempty"`
}

// MonitorRunState is where a run is.
// +enum
// +k8s:enum
type MonitorRunState string

// Values of MonitorRunState.
const (
	MonitorRunQueued    MonitorRunState = "queued"
	MonitorRunRunning   MonitorRunState = "running"
	MonitorRunSucceeded MonitorRunState = "succeeded"
	MonitorRunFailed    MonitorRunState = "failed"
)

// MonitorRunStatus is what came of a run.
type MonitorRunStatus struct {
	// state is queued, running, succeeded or failed.
	// +optional
	// +k8s:optional
	State MonitorRunState `json:"state,omitempty"`
	// startedAt is when the run was begun.
	// +optional
	// +k8s:optional
	StartedAt *metav1.Time `json:"startedAt,omitempty"`
	// completedAt is when it ended.
	// +optional
	// +k8s:optional
	CompletedAt *metav1.Time `json:"completedAt,omitempty"`
	// nextAttemptAt is when the code host is asked again, after it gave no answer.
	// +optional
	// +k8s:optional
	NextAttemptAt *metav1.Time `json:"nextAttemptAt,omitempty"`
	// attempts is how often the code host was asked.
	// +optional
	Attempts int32 `json:"attempts,omitempty"`
	// message says how the run ended.
	// +optional
	// +k8s:optional
	// +k8s:maxLength=1024
	Message string `json:"message,omitempty"`
	// pullRequests is how many pull requests were looked at.
	// +optional
	PullRequests int32 `json:"pullRequests,omitempty"`
	// issues is how many issues were looked at.
	// +optional
	Issues int32 `json:"issues,omitempty"`
	// workActions is how much work was begun.
	// +optional
	WorkActions int32 `json:"workActions,omitempty"`
}
