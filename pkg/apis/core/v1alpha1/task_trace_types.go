// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// SpanStatus is where a pair of start and end events is.
// +enum
type SpanStatus string

// Statuses of a span.
const (
	SpanRunning   SpanStatus = "running"
	SpanCompleted SpanStatus = "completed"
	SpanFailed    SpanStatus = "failed"
)

// Kinds of the segments of a critical path.
const (
	TraceKindModel     = "model"
	TraceKindTool      = "tool"
	TraceKindChild     = "child"
	TraceKindApproval  = "approval"
	TraceKindWorkspace = "workspace"
	TraceKindIdle      = "idle"
)

// Kinds of child tasks.
const (
	TraceChild = "child"
	TraceFork  = "fork"
)

// Statuses of an artifact.
const (
	TraceArtifactUploaded = "uploaded"
	TraceArtifactFailed   = "failed"
)

// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object

// TaskTrace is the answer of a get on tasks/trace: what a task did, derived
// from its events up to latestSeq. Rows are in order of startSeq or
// seq; warnings are in the order in which they became known, and a span that
// outlasts a thousand younger ones of its group stands where it ended.
type TaskTrace struct {
	metav1.TypeMeta `json:",inline"`
	// metadata is the standard list metadata. continue asks for the rest of the timeline.
	// +optional
	metav1.ListMeta `json:"metadata,omitempty"`
	// task is the task that the trace describes.
	// +required
	Task TraceTask `json:"task"`
	// latestSeq is the newest event that the trace knows.
	// +required
	LatestSeq int64 `json:"latestSeq"`
	// generatedAt is when the trace was made.
	// +optional
	GeneratedAt metav1.MicroTime `json:"generatedAt,omitempty"`
	// gap describes events that are no longer kept.
	// +optional
	// +k8s:optional
	Gap *EventGap `json:"gap,omitempty"`
	// part is the part of the stream that the groups and the usage cover, if the request bounds it with spans; absent if they cover
	// the whole stream. A span that goes on after the part is running, and an end whose start is before it is left out.
	// +optional
	// +k8s:optional
	Part *TracePart `json:"part,omitempty"`
	// timeline are the events themselves, without apiVersion, kind, metadata and dedupKey.
	// +listType=atomic
	Timeline []ExecutionEvent `json:"timeline"`
	// modelRequests are the requests to models.
	// +listType=atomic
	ModelRequests []TraceModelRequest `json:"modelRequests"`
	// toolCalls are the calls of tools.
	// +listType=atomic
	ToolCalls []TraceToolCall `json:"toolCalls"`
	// childTasks are the tasks that this task made, forks included.
	// +listType=atomic
	ChildTasks []TraceChildTask `json:"childTasks"`
	// workspace are the events of preparing the workspace.
	// +listType=atomic
	Workspace []TraceWorkspace `json:"workspace"`
	// artifacts are the uploads of files.
	// +listType=atomic
	Artifacts []TraceArtifact `json:"artifacts"`
	// errors are events of severity error and events whose type says that something failed, was cancelled,
	// declined or expired.
	// +listType=atomic
	Errors []TraceProblem `json:"errors"`
	// warnings are other events of severity warning, ends without a start, and starts without an end: those that can no longer
	// get an end, because the task is over or a later attempt has begun.
	// +listType=atomic
	Warnings []TraceProblem `json:"warnings"`
	// criticalPath are the spans that the task waited for one after the other, with the time between them.
	// +listType=atomic
	CriticalPath []TraceSegment `json:"criticalPath"`
	// usage sums the model requests.
	// +optional
	// +k8s:optional
	Usage *TaskUsage `json:"usage,omitempty"`
	// terminalEvent is the event that ended the task; absent while it runs.
	// +optional
	// +k8s:optional
	TerminalEvent *ExecutionEvent `json:"terminalEvent,omitempty"`
	// rawUnpaired are completions and failures whose start is not there.
	// +listType=atomic
	RawUnpaired []ExecutionEvent `json:"rawUnpaired"`
}

// TracePart is a part of a stream.
type TracePart struct {
	// afterSeq is the sequence after which the part begins.
	// +required
	AfterSeq int64 `json:"afterSeq"`
	// throughSeq is the last event of the part. If it is less than latestSeq, it is after of the next part.
	// +required
	ThroughSeq int64 `json:"throughSeq"`
}

// TraceTask is the task that a trace describes.
type TraceTask struct {
	// namespace is the namespace of the task.
	// +required
	Namespace string `json:"namespace"`
	// name is the name of the task.
	// +required
	Name string `json:"name"`
	// uid is the UID of the task.
	// +optional
	UID types.UID `json:"uid,omitempty"`
	// type is what runs the task.
	// +optional
	Type TaskType `json:"type,omitempty"`
	// phase is where the task is in its life.
	// +optional
	Phase TaskPhase `json:"phase,omitempty"`
	// agentName is the agent that does the work.
	// +optional
	AgentName string `json:"agentName,omitempty"`
	// sessionName is the session of the task.
	// +optional
	SessionName string `json:"sessionName,omitempty"`
	// startTime is when the first attempt started.
	// +optional
	// +k8s:optional
	StartTime *metav1.Time `json:"startTime,omitempty"`
	// completionTime is when the task reached a terminal phase.
	// +optional
	// +k8s:optional
	CompletionTime *metav1.Time `json:"completionTime,omitempty"`
	// resultAvailable is set when tasks/result has a result.
	// +required
	ResultAvailable bool `json:"resultAvailable"`
}

// TraceSpan is a pair of events: a start and its end. A start whose end never came stays running, even when the task is over;
// error then says so.
type TraceSpan struct {
	// id correlates the pair; a pair without one has an id made of its startSeq.
	// +required
	ID string `json:"id"`
	// status is running, completed or failed.
	// +required
	Status SpanStatus `json:"status"`
	// startSeq is the event that began it.
	// +required
	StartSeq int64 `json:"startSeq"`
	// endSeq is the event that ended it.
	// +optional
	EndSeq int64 `json:"endSeq,omitempty"`
	// startedAt is when it began.
	// +optional
	StartedAt metav1.MicroTime `json:"startedAt,omitempty"`
	// endedAt is when it ended.
	// +optional
	// +k8s:optional
	EndedAt *metav1.MicroTime `json:"endedAt,omitempty"`
	// durationMs is how long it took, in milliseconds: as the worker measured it, or else the time between
	// the events.
	// +optional
	// +k8s:optional
	DurationMs *int64 `json:"durationMs,omitempty"`
	// summary is the newest line for people.
	// +optional
	Summary string `json:"summary,omitempty"`
	// error is what went wrong.
	// +optional
	Error string `json:"error,omitempty"`
}

// TraceModelRequest is a request to a model; each try of a request that was
// repeated is one of its own. What the provider did not report is absent, not
// zero.
type TraceModelRequest struct {
	TraceSpan `json:",inline"`
	// iteration is the turn of the model and tool loop, from 1.
	// +optional
	Iteration int64 `json:"iteration,omitempty"`
	// attempt is the number of the try within the turn, from 1.
	// +optional
	Attempt int64 `json:"attempt,omitempty"`
	// provider is the model provider.
	// +optional
	Provider string `json:"provider,omitempty"`
	// model is the model's name.
	// +optional
	Model string `json:"model,omitempty"`
	// stopReason is why the model stopped.
	// +optional
	StopReason string `json:"stopReason,omitempty"`
	// inputTokens is the number of input tokens.
	// +optional
	// +k8s:optional
	InputTokens *int64 `json:"inputTokens,omitempty"`
	// outputTokens is the number of output tokens.
	// +optional
	// +k8s:optional
	OutputTokens *int64 `json:"outputTokens,omitempty"`
	// cachedInputTokens is the part of inputTokens read from a cache.
	// +optional
	// +k8s:optional
	CachedInputTokens *int64 `json:"cachedInputTokens,omitempty"`
}

// TraceToolCall is a call of a tool.
type TraceToolCall struct {
	TraceSpan `json:",inline"`
	// name is the tool's name.
	// +optional
	Name string `json:"name,omitempty"`
	// iteration is the turn of the model and tool loop, from 1.
	// +optional
	Iteration int64 `json:"iteration,omitempty"`
	// argumentBytes is the size of the arguments.
	// +optional
	// +k8s:optional
	ArgumentBytes *int64 `json:"argumentBytes,omitempty"`
	// resultLength is the size of the result, in bytes.
	// +optional
	// +k8s:optional
	ResultLength *int64 `json:"resultLength,omitempty"`
	// approvalID is the approval that the call waited for.
	// +optional
	ApprovalID string `json:"approvalID,omitempty"`
}

// TraceChildTask is a task that the traced task made.
type TraceChildTask struct {
	TraceSpan `json:",inline"`
	// name is the child's name.
	// +required
	Name string `json:"name"`
	// agent is the child's agent.
	// +optional
	Agent string `json:"agent,omitempty"`
	// kind is child or fork.
	// +optional
	Kind string `json:"kind,omitempty"`
	// result is the child's result, shortened.
	// +optional
	Result string `json:"result,omitempty"`
}

// TraceWorkspace is an event of preparing the workspace.
type TraceWorkspace struct {
	// status is running, completed or failed.
	// +required
	Status SpanStatus `json:"status"`
	// seq is the event.
	// +required
	Seq int64 `json:"seq"`
	// summary is the event's line for people.
	// +optional
	Summary string `json:"summary,omitempty"`
	// createdAt is when the event was stored.
	// +optional
	CreatedAt metav1.MicroTime `json:"createdAt,omitempty"`
}

// TraceArtifact is the upload of a file.
type TraceArtifact struct {
	// name is the file's name.
	// +optional
	Name string `json:"name,omitempty"`
	// status is uploaded or failed.
	// +required
	Status string `json:"status"`
	// seq is the event.
	// +required
	Seq int64 `json:"seq"`
	// summary is the event's line for people.
	// +optional
	Summary string `json:"summary,omitempty"`
	// createdAt is when the event was stored.
	// +optional
	CreatedAt metav1.MicroTime `json:"createdAt,omitempty"`
}

// TraceProblem is an error or a warning.
type TraceProblem struct {
	// seq is the event.
	// +required
	Seq int64 `json:"seq"`
	// type is the event's type.
	// +required
	Type EventType `json:"type"`
	// severity is the event's severity.
	// +optional
	Severity EventSeverity `json:"severity,omitempty"`
	// message tells what is wrong.
	// +optional
	Message string `json:"message,omitempty"`
}

// TraceSegment is a part of the critical path.
type TraceSegment struct {
	// kind is model, tool, child, approval, workspace or idle.
	// +required
	Kind string `json:"kind"`
	// id is the span's id; empty for idle time.
	// +optional
	ID string `json:"id,omitempty"`
	// name is the model, tool or child.
	// +optional
	Name string `json:"name,omitempty"`
	// startedAt is when the task began to wait for it.
	// +optional
	StartedAt metav1.MicroTime `json:"startedAt,omitempty"`
	// startSeq is the event that began it.
	// +optional
	StartSeq int64 `json:"startSeq,omitempty"`
	// endSeq is the event that ended it; absent while it runs and when its end never came.
	// +optional
	EndSeq int64 `json:"endSeq,omitempty"`
	// durationMs is how long the task waited for it, in milliseconds; while it runs, up to the latest event.
	// +required
	DurationMs int64 `json:"durationMs"`
}
