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

// Events of a task, written by its controller.
const (
	// EventTaskCreated: the controller saw the task for the first time. Content: type.
	EventTaskCreated EventType = "TaskCreated"
	// EventTaskPhaseChanged: the phase of the task changed, or the server refuses more of what a limit bounds. Content
	// of a change: from, to, attempt, message; of a limit: reason, limit, of, limited; of a model request that waits for a
	// limit of requests: reason, of, provider, retryInMs.
	EventTaskPhaseChanged EventType = "TaskPhaseChanged"
	// EventTaskJobCreated: the Job or process of an attempt exists. Content: attempt, jobName, jobUID.
	EventTaskJobCreated EventType = "TaskJobCreated"
	// EventTaskStarted: an attempt runs. Content: attempt, jobName, jobUID.
	EventTaskStarted EventType = "TaskStarted"
	// EventTaskSucceeded: the task ended and its result is stored. Content: attempts.
	EventTaskSucceeded EventType = "TaskSucceeded"
	// EventTaskFailed: the task ended without success. Content: attempts, reason.
	EventTaskFailed EventType = "TaskFailed"
	// EventTaskCancelled: the task ended because somebody cancelled it. Content: attempts, reason.
	EventTaskCancelled EventType = "TaskCancelled"
)

// Events of the worker as a process.
const (
	// EventWorkerStarted: the worker read its task and begins. Content: attempt, taskType, sandbox; unhidden where
	// values of secrets are too short or too common to be removed from what the run says.
	EventWorkerStarted EventType = "WorkerStarted"
	// EventWorkerCompleted: the worker did its work. Content: attempt, and figures of the run.
	EventWorkerCompleted EventType = "WorkerCompleted"
	// EventWorkerFailed: the worker could not do its work. Content: attempt, reason, exitCode, and figures of the run.
	EventWorkerFailed EventType = "WorkerFailed"
)

// Events of the conversation with a model. Provider, model, stop reason and token counts are lifted from content into
// fields of the event.
const (
	// EventModelRequestStarted: a request to a model begins. Content: iteration, provider, model, attempt, messageCount,
	// toolCount, and maxInputTokens, which is how many tokens the input may have at most; maxOutputTokens
	// of a coding agent.
	EventModelRequestStarted EventType = "ModelRequestStarted"
	// EventModelRequestCompleted: the model answered. Content: iteration, provider, model, attempt, durationMs,
	// usageReported, inputTokens, outputTokens, cachedInputTokens, cacheWriteInputTokens, stopReason, toolCalls.
	EventModelRequestCompleted EventType = "ModelRequestCompleted"
	// EventModelRequestFailed: the request failed. Content: iteration, provider, model, attempt, durationMs,
	// usageReported, inputTokens, outputTokens, cachedInputTokens, cacheWriteInputTokens, errorClass; unsent where the vendor did
	// not get it, retryInMs where it is repeated, retryAfterMs where the vendor asked to wait.
	EventModelRequestFailed EventType = "ModelRequestFailed"
	// EventModelUsageUpdated: a producer reports tokens outside a request. Content: that of the producer; of a coding agent at a registered
	// runtime: cacheWriteInputTokens.
	EventModelUsageUpdated EventType = "ModelUsageUpdated"
	// EventModelContextUpdated: a producer reports how full the context window is, which says nothing about the tokens that were used.
	// Content of a coding agent that the platform runs: contextUsed, contextSize; of another: that of the producer.
	EventModelContextUpdated EventType = "ModelContextUpdated"
	// EventModelMessage: the model said something; contentText is its text. Content: iteration, contentChars, toolCalls,
	// stopReason.
	EventModelMessage EventType = "ModelMessage"
	// EventContextTruncated: old messages were left out, because the conversation was too long for the model. Content:
	// iteration, messageCountBefore, messageCountAfter.
	EventContextTruncated EventType = "ContextTruncated"
)

// Events of tool calls. Arguments and results are in none of them.
const (
	// EventToolCallStarted: a tool is called. Content: iteration, toolName, toolCallID, argumentBytes; approvalID of a
	// call that was approved; kind and files of a call of a coding agent, which has no iteration; withoutPermission as in
	// ToolCallCompleted.
	EventToolCallStarted EventType = "ToolCallStarted"
	// EventToolCallCompleted: the tool answered. Content: iteration, toolName, toolCallID, resultLength, durationMs;
	// approvalID of a call that was approved; programFailure if the call ran a program that failed; childTask and agent of a
	// task that the call created; kind, files and changedFiles of a call of a coding agent; withoutPermission if the coding agent
	// made a call that was refused, or that it had to ask for and did not; argumentsChanged if it reports other arguments than
	// those that were approved.
	EventToolCallCompleted EventType = "ToolCallCompleted"
	// EventToolCallFailed: the call failed, and the model was given the error. Content: iteration, toolName, toolCallID,
	// resultLength, durationMs, errorType; approvalID of a call that was approved; kind, files, changedFiles and argumentsChanged of a
	// call of a coding agent. errorType is approval_required if the coding agent had begun before it asked: the call begins again when
	// it is approved.
	EventToolCallFailed EventType = "ToolCallFailed"
)

// Events of the repository that a task works on.
const (
	// EventWorkspacePreparationStarted: the repository is being fetched. Content: repository.
	EventWorkspacePreparationStarted EventType = "WorkspacePreparationStarted"
	// EventWorkspacePreparationCompleted: the repository's files are there, and nothing of the run has begun. Content: repository,
	// commit, tree, files, bytes; ref, subPath, plainLinks and submodules if there are any. Of a task that continues another one:
	// priorTask, priorChanges (how many files that one changed) and priorDigest.
	EventWorkspacePreparationCompleted EventType = "WorkspacePreparationCompleted"
	// EventWorkspacePreparationFailed: the repository could not be fetched. Content: repository, reason.
	EventWorkspacePreparationFailed EventType = "WorkspacePreparationFailed"
	// EventWorkspaceFrozen: the run is over, and what it changed in its workspace is kept. Content: commit, changedFiles, bytes, digest.
	EventWorkspaceFrozen EventType = "WorkspaceFrozen"
	// EventDeliveryStateChanged: status.delivery.state of the task changed. Content: from, to, publicationID, repository, branch,
	// startingSHA; remoteBeforeSHA, treeSHA, expectedCommitSHA, verifiedRemoteSHA, supersedingRemoteSHA, artifactDigest and pullRequest, its
	// number, as soon as they are known.
	EventDeliveryStateChanged EventType = "DeliveryStateChanged"
)

// Events of a coding agent in a runtime of its own.
const (
	// EventAgentRuntimeStarted: the runtime was started. Content of a coding agent that the platform runs: runtime, program, sandbox,
	// protocol, agent, agentVersion, model; of another: that of the producer. Content of one at a registered runtime:
	// runtime, runtimeUID, instance, profileDigest, protocol, model.
	EventAgentRuntimeStarted EventType = "AgentRuntimeStarted"
	// EventAgentRuntimeCommandStarted: the runtime was given its prompt. Content of a coding agent that the platform runs: promptChars; of
	// another: that of the producer.
	EventAgentRuntimeCommandStarted EventType = "AgentRuntimeCommandStarted"
	// EventAgentRuntimeCompleted: the runtime did its work. Content of a coding agent that the platform runs: stopReason, resultLength,
	// toolCalls, durationMs; of another: that of the producer.
	EventAgentRuntimeCompleted EventType = "AgentRuntimeCompleted"
	// EventAgentRuntimeFailed: the runtime failed. Content of a coding agent that the platform runs: stopReason, reason, toolCalls,
	// durationMs; of another: that of the producer.
	EventAgentRuntimeFailed EventType = "AgentRuntimeFailed"
	// EventAgentRuntimeCancelled: the runtime was stopped. Content of a coding agent that the platform runs: stopReason, toolCalls,
	// durationMs; of another: that of the producer.
	EventAgentRuntimeCancelled EventType = "AgentRuntimeCancelled"
)

// Events of what a task leaves.
const (
	// EventResultSubmitted: the result is stored. Content: resultLength.
	EventResultSubmitted EventType = "ResultSubmitted"
	// EventArtifactUploadCompleted: an artifact is stored. Content: artifact, size.
	EventArtifactUploadCompleted EventType = "ArtifactUploadCompleted"
	// EventArtifactUploadFailed: an artifact could not be stored. Content: artifact, error.
	EventArtifactUploadFailed EventType = "ArtifactUploadFailed"
	// EventPlanUpdated: the agent wrote a new plan, which is the text. Content: summary, progressPct, goalComplete, iteration.
	EventPlanUpdated EventType = "PlanUpdated"
)

// Events of messages between the tasks of a family, in the stream of the recipient.
const (
	// EventTaskMessageReceived: another task of the family sent a message, which is the text. Content: number, fromTask,
	// fromTaskUID, parentTask.
	EventTaskMessageReceived EventType = "TaskMessageReceived"
	// EventTaskMessagesRead: the task read its messages up to a number. Content: through, run, iteration, before.
	EventTaskMessagesRead EventType = "TaskMessagesRead"
)

// Events of messages to the outside.
const (
	// EventGatewayDeliveryCompleted: a message was delivered through a gateway. Content: gateway, deliveryId, eventId, kind, attempts,
	// providerMessageId.
	EventGatewayDeliveryCompleted EventType = "GatewayDeliveryCompleted"
)

// Events of forks, in the streams of the source and of the new task.
const (
	// EventTaskForkRequested: somebody asked for a fork of this task. Content: sourceTask, sourceTaskUID, sourceSeq,
	// newTask, newTaskUID, requestedBy.
	EventTaskForkRequested EventType = "TaskForkRequested"
	// EventTaskForkCreated: a fork exists. Content: sourceTask, sourceTaskUID, sourceSeq, newTask, newTaskUID, agent,
	// requestedBy.
	EventTaskForkCreated EventType = "TaskForkCreated"
)

// Events of approvals. Of all decisions on an approval the first counts.
const (
	// EventApprovalRequested: a tool call waits for a decision. Content: approvalID, taskUID, requestedBy, action,
	// riskSummary, severity, targetTool, toolCallID, targetArgsDigest, targetSpecDigest, targetArgsPreview, timeout,
	// expiresAt, binding.
	EventApprovalRequested EventType = "ApprovalRequested"
	// EventApprovalApproved: somebody approved. Content: approvalID, taskUID, decision, reason, actor.
	EventApprovalApproved EventType = "ApprovalApproved"
	// EventApprovalDeclined: somebody declined. Content: approvalID, taskUID, decision, reason, actor.
	EventApprovalDeclined EventType = "ApprovalDeclined"
	// EventApprovalExpired: nobody decided in time. Content: approvalID, taskUID, decision, reason, actor.
	EventApprovalExpired EventType = "ApprovalExpired"
	// EventApprovalCancelled: the task ended before somebody decided. Content: approvalID, taskUID, decision, reason,
	// actor.
	EventApprovalCancelled EventType = "ApprovalCancelled"
	// EventApprovalExecutionUpdated: an approved call was made, or was not. Content: approvalID, taskUID,
	// executionOutcome, reason.
	EventApprovalExecutionUpdated EventType = "ApprovalExecutionUpdated"

	// EventToolCallJudged: policies objected to a call that the model wants to make. Content: verdict, callID,
	// findings (action, policy, binding, message).
	EventToolCallJudged EventType = "ToolCallJudged"
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

// SeverityCritical is the highest risk of an approval. The event that requests the approval has SeverityError.
const SeverityCritical EventSeverity = "critical"

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
// are appended and never changed; they are removed with their task or by retention. Its name is "<task>.<seq, 10 digits>", so
// that key order is sequence order.
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
	// attempt is the attempt of the task whose worker recorded the event; absent if no worker did.
	// +optional
	Attempt int32 `json:"attempt,omitempty"`
	// elapsedMicros is when the worker recorded the event, in microseconds since the worker began. Its clock runs on
	// while the server is away and is not set, so the difference between two events of an attempt is how long it took.
	// Absent if no worker recorded the event, or one of an older version.
	// +optional
	// +k8s:optional
	ElapsedMicros *int64 `json:"elapsedMicros,omitempty"`

	// taskName is the task that the event describes.
	// +optional
	TaskName string `json:"taskName,omitempty"`
	// rootTask is the task at the top of the tree that the task belongs to: the task itself if it was not delegated. The
	// server sets it.
	// +optional
	RootTask string `json:"rootTask,omitempty"`
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
	// +patchStrategy=replace
	Content *apiextensionsv1.JSON `json:"content,omitempty" patchStrategy:"replace"`
	// contentText is the sanitized text payload, at most 32768 characters.
	// +optional
	ContentText string `json:"contentText,omitempty"`
	// truncation says what was cut, without the removed data.
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

	// recording is what the worker records beside the event. It is taken from what is appended, and no stored event has it: see
	// tasks/recording.
	// +optional
	// +k8s:optional
	Recording *EventRecording `json:"recording,omitempty"`
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
