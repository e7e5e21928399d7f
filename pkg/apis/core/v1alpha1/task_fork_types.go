// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
)

// ForkLatest is the afterSeq that means the newest event of the source.
const ForkLatest = "latest"

// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object

// TaskFork is the body and the answer of a create on tasks/fork: a new task
// that continues the source from one point of its history.
type TaskFork struct {
	metav1.TypeMeta `json:",inline"`
	// metadata is the standard object metadata; it is not used.
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`
	// spec is what the fork shall be.
	// +optional
	Spec TaskForkSpec `json:"spec"`
	// status is what was made. The server sets it.
	// +optional
	Status TaskForkStatus `json:"status,omitempty"`
}

// TaskForkSpec describes the fork to make.
type TaskForkSpec struct {
	// afterSeq is the last event of the source that belongs to the fork's history: 0, "latest", or the
	// sequence of an event that exists. Unset means latest. It selects history only, never workspace data.
	// +optional
	// +k8s:optional
	// +k8s:opaqueType
	AfterSeq *intstr.IntOrString `json:"afterSeq,omitempty"`
	// newTaskName is the name of the new task. Unset means a name made from the source's name and
	// idempotencyKey, or a random one. A task that exists is a conflict.
	// +optional
	// +k8s:optional
	// +k8s:format=k8s-long-name
	NewTaskName string `json:"newTaskName,omitempty"`
	// agentRef replaces the agent of the source.
	// +optional
	// +k8s:optional
	AgentRef *NamespacedReference `json:"agentRef,omitempty"`
	// prompt replaces the prompt of the source.
	// +optional
	// +k8s:optional
	Prompt string `json:"prompt,omitempty"`
	// workspace replaces the workspace of the source.
	// +optional
	// +k8s:optional
	// +k8s:opaqueType
	Workspace *TaskWorkspace `json:"workspace,omitempty"`
	// executionCheckpoint selects saved data that the fork starts from; unset means fresh data.
	// +optional
	// +k8s:optional
	ExecutionCheckpoint *ExecutionCheckpointReference `json:"executionCheckpoint,omitempty"`
	// session says which session the fork of a task with a session gets: Own (the default) is a session of the fork's name, which
	// begins with what the source's session held at the fork's point; Shared is the source's session itself.
	// +optional
	// +k8s:optional
	Session ForkSession `json:"session,omitempty"`
	// idempotencyKey makes a repeated request return the first result, where newTaskName is unset. The REST
	// header Idempotency-Key sets it.
	// +optional
	// +k8s:optional
	// +k8s:maxLength=256
	IdempotencyKey string `json:"idempotencyKey,omitempty"`
}

// ForkSession says which session a fork gets.
// +enum
// +k8s:enum
type ForkSession string

// Sessions of forks.
const (
	ForkSessionOwn    ForkSession = "Own"
	ForkSessionShared ForkSession = "Shared"
)

// TaskForkStatus is what a fork made.
type TaskForkStatus struct {
	// namespace is the namespace of both tasks.
	// +optional
	Namespace string `json:"namespace,omitempty"`
	// sourceTaskName is the source.
	// +optional
	SourceTaskName string `json:"sourceTaskName,omitempty"`
	// newTaskName is the task that was made.
	// +optional
	NewTaskName string `json:"newTaskName,omitempty"`
	// afterSeq is the point of the source's history that was forked.
	// +optional
	AfterSeq int64 `json:"afterSeq,omitempty"`
	// replayed is set when the idempotency key had made the task before.
	// +optional
	Replayed bool `json:"replayed,omitempty"`
	// forkContext is the history that was given to the new task.
	// +optional
	// +k8s:optional
	// +k8s:opaqueType
	ForkContext *ForkContext `json:"forkContext,omitempty"`
}

// ForkContext is the bounded, sanitized history of a fork: at most 200 events
// and 256 KiB, newest first kept, oldest first shown.
type ForkContext struct {
	// sourceNamespace is the namespace of the source.
	// +required
	SourceNamespace string `json:"sourceNamespace"`
	// sourceTask is the name of the source.
	// +required
	SourceTask string `json:"sourceTask"`
	// afterSeq is the last event that belongs to the history.
	// +required
	AfterSeq int64 `json:"afterSeq"`
	// events are the events, in sequence order.
	// +listType=atomic
	Events []ForkContextEvent `json:"events"`
	// truncated is set when events or parts of them were left out.
	// +required
	Truncated bool `json:"truncated"`
}

// ForkContextEvent is one event of a fork's history.
type ForkContextEvent struct {
	// seq is the sequence of the event in the source.
	// +required
	Seq int64 `json:"seq"`
	// type is the event's type.
	// +required
	Type EventType `json:"type"`
	// severity is the event's severity.
	// +optional
	Severity EventSeverity `json:"severity,omitempty"`
	// summary is the event's line for people.
	// +optional
	Summary string `json:"summary,omitempty"`
	// toolName is the tool that the event concerns.
	// +optional
	ToolName string `json:"toolName,omitempty"`
	// toolCallID correlates the events of one call.
	// +optional
	ToolCallID string `json:"toolCallID,omitempty"`
	// content is the structured payload.
	// +optional
	// +k8s:optional
	// +k8s:opaqueType
	// +patchStrategy=replace
	Content *apiextensionsv1.JSON `json:"content,omitempty" patchStrategy:"replace"`
	// contentText is the text payload.
	// +optional
	ContentText string `json:"contentText,omitempty"`
}
