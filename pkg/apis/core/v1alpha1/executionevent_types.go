// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// EventType is the stable type of an execution event. The complete list is
// closed: an unknown type in a submission or a filter is a bad request.
// +enum
type EventType string

// Event types, by the part of a run that they tell of.
const (
	EventTaskCreated      EventType = "TaskCreated"
	EventTaskPhaseChanged EventType = "TaskPhaseChanged"
	EventTaskJobCreated   EventType = "TaskJobCreated"
	EventTaskStarted      EventType = "TaskStarted"
	EventTaskSucceeded    EventType = "TaskSucceeded"
	EventTaskFailed       EventType = "TaskFailed"
	EventTaskCancelled    EventType = "TaskCancelled"

	EventWorkerStarted   EventType = "WorkerStarted"
	EventWorkerCompleted EventType = "WorkerCompleted"
	EventWorkerFailed    EventType = "WorkerFailed"

	EventModelRequestStarted   EventType = "ModelRequestStarted"
	EventModelRequestCompleted EventType = "ModelRequestCompleted"
	EventModelRequestFailed    EventType = "ModelRequestFailed"
	EventModelUsageUpdated     EventType = "ModelUsageUpdated"
	EventModelContextUpdated   EventType = "ModelContextUpdated"
	EventModelMessage          EventType = "ModelMessage"
	EventContextTruncated      EventType = "ContextTruncated"

	EventToolCallStarted   EventType = "ToolCallStarted"
	EventToolCallCompleted EventType = "ToolCallCompleted"
	EventToolCallFailed    EventType = "ToolCallFailed"

	EventWorkspacePreparationStarted   EventType = "WorkspacePreparationStarted"
	EventWorkspacePreparationCompleted EventType = "WorkspacePreparationCompleted"
	EventWorkspacePreparationFailed    EventType = "WorkspacePreparationFailed"

	EventAgentRuntimeStarted        EventType = "AgentRuntimeStarted"
	EventAgentRuntimeCommandStarted EventType = "AgentRuntimeCommandStarted"
	EventAgentRuntimeCompleted      EventType = "AgentRuntimeCompleted"
	EventAgentRuntimeFailed         EventType = "AgentRuntimeFailed"
	EventAgentRuntimeCancelled      EventType = "AgentRuntimeCancelled"

	EventResultSubmitted         EventType = "ResultSubmitted"
	EventArtifactUploadCompleted EventType = "ArtifactUploadCompleted"
	EventArtifactUploadFailed    EventType = "ArtifactUploadFailed"
	EventPlanUpdated             EventType = "PlanUpdated"

	EventGatewayDeliveryCompleted EventType = "GatewayDeliveryCompleted"

	EventTaskForkRequested EventType = "TaskForkRequested"
	EventTaskForkCreated   EventType = "TaskForkCreated"

	EventApprovalRequested        EventType = "ApprovalRequested"
	EventApprovalApproved         EventType = "ApprovalApproved"
	EventApprovalDeclined         EventType = "ApprovalDeclined"
	EventApprovalExpired          EventType = "ApprovalExpired"
	EventApprovalCancelled        EventType = "ApprovalCancelled"
	EventApprovalExecutionUpdated EventType = "ApprovalExecutionUpdated"
)

// EventSeverity ranks an execution event. An unknown value of a producer
// becomes SeverityInfo.
type EventSeverity string

// Severities, lowest first.
const (
	SeverityDebug   EventSeverity = "debug"
	SeverityInfo    EventSeverity = "info"
	SeverityWarning EventSeverity = "warning"
	SeverityError   EventSeverity = "error"
)

// StreamType names what an event stream belongs to.
type StreamType string

// Stream types. Only StreamTask is accepted on append; session streams are a
// read model of task events that carry a session name.
const (
	StreamTask    StreamType = "task"
	StreamSession StreamType = "session"
)

// +genclient
// +genclient:onlyVerbs=create,get,list,watch
// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object

// ExecutionEvent is one durable, sanitized record of what a task did. Events
// are appended and never changed; they leave with their task or by retention.
// Its name is "<task>.<seq, 10 digits>", so that key order is sequence order.
type ExecutionEvent struct {
	metav1.TypeMeta `json:",inline"`
	// metadata is the standard object metadata. The server sets name, uid,
	// creationTimestamp and the owner reference to the task. Pages and streams
	// leave it out.
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty,omitzero"`

	// id is the globally unique id of the event, set by the server.
	// +optional
	ID string `json:"id,omitempty"`
	// namespace is the namespace of the stream, equal to metadata.namespace.
	// +optional
	StreamNamespace string `json:"namespace,omitempty"`
	// streamType is "task"; in a session timeline it is "session".
	// +optional
	StreamType StreamType `json:"streamType,omitempty"`
	// streamID is the task name; in a session timeline it is the session name.
	// +optional
	StreamID string `json:"streamID,omitempty"`
	// seq is the place of the event in its stream: dense, from 1, set by the server.
	// +optional
	Seq int64 `json:"seq,omitempty"`
	// type is the stable event type.
	// +required
	Type EventType `json:"type"`
	// severity is debug, info, warning or error. Anything else is stored as info.
	// +optional
	Severity EventSeverity `json:"severity,omitempty"`
	// createdAt is when the server stored the event.
	// +optional
	CreatedAt metav1.MicroTime `json:"createdAt,omitempty"`

	// taskName is the task that the event tells of.
	// +optional
	TaskName string `json:"taskName,omitempty"`
	// sessionName is the session of the task; the server sets it.
	// +optional
	SessionName string `json:"sessionName,omitempty"`
	// agentName is the agent that acted.
	// +optional
	AgentName string `json:"agentName,omitempty"`
	// toolName is the tool that the event concerns.
	// +optional
	ToolName string `json:"toolName,omitempty"`
	// toolCallID correlates the events of one tool call or approval.
	// +optional
	ToolCallID string `json:"toolCallID,omitempty"`

	// provider is the model provider, lifted out of content on model events.
	// +optional
	Provider string `json:"provider,omitempty"`
	// model is the model name, lifted out of content on model events.
	// +optional
	Model string `json:"model,omitempty"`
	// stopReason is why the model stopped, lifted out of content on model events.
	// +optional
	StopReason string `json:"stopReason,omitempty"`
	// inputTokens is the number of input tokens the provider reported; absent means not reported.
	// +optional
	// +k8s:optional
	InputTokens *int64 `json:"inputTokens,omitempty"`
	// outputTokens is the number of output tokens the provider reported; absent means not reported.
	// +optional
	// +k8s:optional
	OutputTokens *int64 `json:"outputTokens,omitempty"`
	// cachedInputTokens is the part of inputTokens read from a cache; absent means not reported.
	// +optional
	// +k8s:optional
	CachedInputTokens *int64 `json:"cachedInputTokens,omitempty"`
	// contextWindowUsed is the number of tokens of the context window in use.
	// +optional
	// +k8s:optional
	ContextWindowUsed *int64 `json:"contextWindowUsed,omitempty"`
	// contextWindowSize is the size of the context window in tokens.
	// +optional
	// +k8s:optional
	ContextWindowSize *int64 `json:"contextWindowSize,omitempty"`

	// summary is one sanitized line, at most 4096 characters.
	// +optional
	Summary string `json:"summary,omitempty"`
	// content is the sanitized structured payload, at most 64 KiB of JSON.
	// +optional
	// +k8s:optional
	Content *apiextensionsv1.JSON `json:"content,omitempty"`
	// contentText is the sanitized text payload, at most 32768 characters.
	// +optional
	ContentText string `json:"contentText,omitempty"`
	// truncation tells what was cut, without the removed data.
	// +optional
	// +k8s:optional
	Truncation *EventTruncation `json:"truncation,omitempty"`

	// taskSeq is the sequence in the source task's stream, in session timelines.
	// +optional
	TaskSeq int64 `json:"taskSeq,omitempty"`
	// taskStreamID is the source task's stream, in session timelines.
	// +optional
	TaskStreamID string `json:"taskStreamID,omitempty"`

	// dedupKey makes a repeated append return the first result. It is unique
	// within a stream and at most 512 bytes long.
	// +optional
	DedupKey string `json:"dedupKey,omitempty"`
}

// EventTruncation tells which payloads of an event were cut, and how large
// they were after redaction.
type EventTruncation struct {
	// summaryTruncated is set when summary was cut.
	// +optional
	SummaryTruncated bool `json:"summaryTruncated,omitempty"`
	// contentTextTruncated is set when contentText was cut.
	// +optional
	ContentTextTruncated bool `json:"contentTextTruncated,omitempty"`
	// contentJsonTruncated is set when content was replaced by a preview.
	// +optional
	ContentJSONTruncated bool `json:"contentJsonTruncated,omitempty"`
	// summaryOriginalChars is the length of summary in characters before the cut.
	// +optional
	SummaryOriginalChars int64 `json:"summaryOriginalChars,omitempty"`
	// contentTextOriginalChars is the length of contentText in characters before the cut.
	// +optional
	ContentTextOriginalChars int64 `json:"contentTextOriginalChars,omitempty"`
	// contentJsonOriginalBytes is the size of content in bytes before the cut.
	// +optional
	ContentJSONOriginalBytes int64 `json:"contentJsonOriginalBytes,omitempty"`
}

// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object

// ExecutionEventList is a list of execution events. As the body of a create on
// tasks/events it is a batch, appended as one commit.
type ExecutionEventList struct {
	metav1.TypeMeta `json:",inline"`
	// metadata is the standard list metadata.
	// +optional
	metav1.ListMeta `json:"metadata,omitempty"`
	// items are the events in sequence order.
	Items []ExecutionEvent `json:"items"`
}
