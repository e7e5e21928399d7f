// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// +genclient
// +genclient:onlyVerbs=create
// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object

// TaskQuery finds tasks of a namespace and returns summaries of them in an order of the caller's choice, which a list cannot
// do. It is answered and not stored. Whoever creates one needs to list the tasks of the namespace.
type TaskQuery struct {
	metav1.TypeMeta `json:",inline"`
	// metadata is the standard object metadata; only the namespace is used.
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`
	// spec is what to find.
	// +optional
	Spec TaskQuerySpec `json:"spec,omitempty"`
	// status is what was found.
	// +optional
	Status TaskQueryStatus `json:"status,omitempty"`
}

// TaskOrder is what tasks are sorted by.
// +enum
// +k8s:enum
type TaskOrder string

// Orders of tasks.
const (
	// TasksByCreated is the order in which tasks were created.
	TasksByCreated TaskOrder = "created"
	// TasksByStarted is by the start of the first attempt, and then by creation.
	TasksByStarted TaskOrder = "started"
	// TasksByDuration is by the time from the start to the end, or until now.
	TasksByDuration TaskOrder = "duration"
	// TasksByTokens is by the sum of input and output tokens.
	TasksByTokens TaskOrder = "tokens"
	// TasksByName is by name.
	TasksByName TaskOrder = "name"
)

// TaskQuerySpec is what to find: the tasks that everything below selects. Times are UTC dates (2026-01-31) or RFC 3339
// timestamps.
type TaskQuerySpec struct {
	// labelSelector selects tasks by their labels, as kubectl get -l does.
	// +optional
	LabelSelector string `json:"labelSelector,omitempty"`
	// phases selects tasks in any of these phases. A task that runs and waits for an approval is found by Running and by
	// WaitingForApproval, and one that is being deleted also by Terminating.
	// +optional
	// +k8s:optional
	// +k8s:maxItems=16
	// +listType=atomic
	Phases []string `json:"phases,omitempty"`
	// agent selects tasks of this agent.
	// +optional
	Agent string `json:"agent,omitempty"`
	// model selects tasks of this model.
	// +optional
	// +k8s:optional
	// +k8s:maxLength=256
	Model string `json:"model,omitempty"`
	// text selects tasks with this text in their name, in that of their agent, or in the first line of their prompt as
	// summaries have it, in any letter case.
	// +optional
	// +k8s:optional
	// +k8s:maxLength=256
	Text string `json:"text,omitempty"`
	// startedAfter selects tasks that started then or later.
	// +optional
	// +k8s:optional
	// +k8s:maxLength=64
	StartedAfter string `json:"startedAfter,omitempty"`
	// startedBefore selects tasks that started before.
	// +optional
	// +k8s:optional
	// +k8s:maxLength=64
	StartedBefore string `json:"startedBefore,omitempty"`
	// minDuration selects tasks that took, or have run, at least this long, such as 90s.
	// +optional
	// +k8s:optional
	MinDuration *Duration `json:"minDuration,omitempty"`
	// minTokens selects tasks that are known to have used at least this many tokens, input and output together.
	// +optional
	// +k8s:optional
	// +k8s:minimum=0
	MinTokens int64 `json:"minTokens,omitempty"`
	// orderBy is what the tasks are sorted by: created (the default), started, duration, tokens or name. Tasks without the
	// value come last, and tasks with the same value are sorted by name.
	// +optional
	// +k8s:optional
	OrderBy TaskOrder `json:"orderBy,omitempty"`
	// descending sorts the largest value first. Tasks without a value still come last.
	// +optional
	Descending bool `json:"descending,omitempty"`
	// limit is how many tasks are returned: 100 by default, at most 500.
	// +optional
	Limit int32 `json:"limit,omitempty"`
	// continue is status.continue of the page before, for the next page of the same query. All pages show the tasks as they
	// were when the first one was read. If that is too long ago, the answer is 410.
	// +optional
	// +k8s:optional
	// +k8s:maxLength=1024
	Continue string `json:"continue,omitempty"`
}

// TaskQueryStatus is what was found.
type TaskQueryStatus struct {
	// items are the tasks, in the order that was asked for.
	// +optional
	// +listType=atomic
	Items []TaskSummary `json:"items"`
	// matched is how many tasks were found on all pages together.
	Matched int64 `json:"matched"`
	// asOf is the time that all pages describe.
	// +optional
	// +k8s:optional
	AsOf *metav1.Time `json:"asOf,omitempty"`
	// continue is for the next page; absent on the last one.
	// +optional
	Continue string `json:"continue,omitempty"`
}

// TaskSummary is what a list shows of a task.
type TaskSummary struct {
	// name is the name of the task.
	Name string `json:"name"`
	// uid is its UID.
	UID types.UID `json:"uid"`
	// type is its type: ai, agent or container.
	Type TaskType `json:"type"`
	// phase is its phase, or what it waits for, as kubectl get shows it.
	Phase string `json:"phase"`
	// agent is the agent that does the work; absent if there is none.
	// +optional
	Agent string `json:"agent,omitempty"`
	// model is the model that is asked.
	// +optional
	Model string `json:"model,omitempty"`
	// prompt is what it is about: the first line of its prompt, without the history that the prompt of a fork begins with,
	// or its command. It has at most 160 bytes.
	// +optional
	Prompt string `json:"prompt,omitempty"`
	// reason says in one word why it waits, or why it ended other than by success.
	// +optional
	Reason string `json:"reason,omitempty"`
	// message explains the phase to people, in at most 240 bytes; absent if the task succeeded.
	// +optional
	Message string `json:"message,omitempty"`
	// suspend is its spec.suspend; absent if that has no effect on it, because it has no schedule and no iterations.
	// +optional
	// +k8s:optional
	Suspend *bool `json:"suspend,omitempty"`
	// parent is the task that delegated it.
	// +optional
	Parent string `json:"parent,omitempty"`
	// creationTimestamp is when it was created.
	// +optional
	CreationTimestamp metav1.Time `json:"creationTimestamp,omitempty"`
	// startTime is when its first attempt started.
	// +optional
	// +k8s:optional
	StartTime *metav1.Time `json:"startTime,omitempty"`
	// completionTime is when it ended.
	// +optional
	// +k8s:optional
	CompletionTime *metav1.Time `json:"completionTime,omitempty"`
	// durationSeconds is the time from its start to its end, or to status.asOf while it runs; absent if it has not started.
	// +optional
	// +k8s:optional
	DurationSeconds *int64 `json:"durationSeconds,omitempty"`
	// inputTokens is the sum of the reported input tokens, also while it runs; absent if none were reported.
	// +optional
	// +k8s:optional
	InputTokens *int64 `json:"inputTokens,omitempty"`
	// outputTokens is the sum of the reported output tokens.
	// +optional
	// +k8s:optional
	OutputTokens *int64 `json:"outputTokens,omitempty"`
	// totalTokens is the sum of both.
	// +optional
	// +k8s:optional
	TotalTokens *int64 `json:"totalTokens,omitempty"`
	// unreportedRequests is how many of its model requests were not reported, so that the sums are too small.
	// +optional
	UnreportedRequests int64 `json:"unreportedRequests,omitempty"`
}
