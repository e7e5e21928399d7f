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

// MonitorCommand is something that a person asked a monitor for, in the API or by a label on the code host.
type MonitorCommand struct {
	metav1.TypeMeta `json:",inline"`
	// metadata is the standard object metadata.
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`
	// spec is what was asked for. It never changes.
	// +required
	Spec MonitorCommandSpec `json:"spec"`
	// status is what became of it.
	// +optional
	Status MonitorCommandStatus `json:"status,omitempty"`
}

// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object

// MonitorCommandList is a list of commands to monitors.
type MonitorCommandList struct {
	metav1.TypeMeta `json:",inline"`
	// metadata is the standard list metadata.
	// +optional
	metav1.ListMeta `json:"metadata,omitempty"`
	// items are the commands to monitors.
	Items []MonitorCommand `json:"items"`
}

// MonitorCommandSource is where a command was given.
// +enum
// +k8s:enum
type MonitorCommandSource string

// Values of MonitorCommandSource.
const (
	MonitorCommandLabel MonitorCommandSource = "label"
	MonitorCommandAPI   MonitorCommandSource = "api"
)

// MonitorCommandSpec is what was asked for, and by whom.
type MonitorCommandSpec struct {
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
	// intent is what was asked for.
	// +required
	// +k8s:required
	Intent MonitorIntent `json:"intent"`
	// targetSHA is the head that a command about a pull request is for. If the head is another one, nothing is done.
	// +optional
	// +k8s:optional
	// +k8s:maxLength=64
	TargetSHA string `json:"targetSHA,omitempty"`
	// source is label or api.
	// +required
	// +k8s:required
	Source MonitorCommandSource `json:"source"`
	// label is the label that was set.
	// +optional
	// +k8s:optional
	// +k8s:maxLength=256
	Label string `json:"label,omitempty"`
	// sender is the login at the code host, or the user of the API, who gave the command.
	// +optional
	// +k8s:optional
	// +k8s:maxLength=512
	Sender string `json:"sender,omitempty"`
	// delivery is the CodeHostDelivery that brought the command, NAMESPACE/NAME.
	// +optional
	// +k8s:optional
	// +k8s:maxLength=512
	Delivery string `json:"delivery,omitempty"`
}

// MonitorCommandState is what became of a command.
// +enum
// +k8s:enum
type MonitorCommandState string

// Values of MonitorCommandState.
const (
	// MonitorCommandAccepted means that it is to be obeyed.
	MonitorCommandAccepted MonitorCommandState = "accepted"
	// MonitorCommandRejected means that who gave it may not, or that it cannot be obeyed.
	MonitorCommandRejected MonitorCommandState = "rejected"
	// MonitorCommandBlocked means that a label, or the state of the pull request or issue, forbids it.
	MonitorCommandBlocked MonitorCommandState = "blocked"
	// MonitorCommandProcessed means that work was begun for it.
	MonitorCommandProcessed MonitorCommandState = "processed"
	// MonitorCommandCompleted means that this work is done.
	MonitorCommandCompleted MonitorCommandState = "completed"
)

// MonitorCommandStatus is what became of a command.
type MonitorCommandStatus struct {
	// state is accepted, rejected, blocked, processed or completed.
	// +optional
	// +k8s:optional
	State MonitorCommandState `json:"state,omitempty"`
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
	// workAction is the MonitorWorkAction that was begun.
	// +optional
	// +k8s:optional
	// +k8s:maxLength=253
	WorkAction string `json:"workAction,omitempty"`
	// labelRemoved is set once the label was removed.
	// +optional
	LabelRemoved bool `json:"labelRemoved,omitempty"`
	// nextAttemptAt is when the code host is asked again, after it gave no answer.
	// +optional
	// +k8s:optional
	NextAttemptAt *metav1.Time `json:"nextAttemptAt,omitempty"`
	// attempts is how often the code host gave no answer.
	// +optional
	Attempts int32 `json:"attempts,omitempty"`
	// decidedAt is when it was decided.
	// +optional
	// +k8s:optional
	DecidedAt *metav1.Time `json:"decidedAt,omitempty"`
}
