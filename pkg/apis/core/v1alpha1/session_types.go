// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// +genclient
// +genclient:method=GetTranscript,verb=get,subresource=transcript,result=SessionTranscript
// +genclient:method=AppendMessages,verb=create,subresource=transcript,input=SessionTranscript,result=SessionTranscript
// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object
// +k8s:supportsSubresource="/status"

// Session is a conversation that tasks, chats or gateways continue.
type Session struct {
	metav1.TypeMeta `json:",inline"`
	// metadata is the standard object metadata.
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`
	// spec is what is wanted.
	// +required
	Spec SessionSpec `json:"spec"`
	// status is what is observed, written by the server and its controllers.
	// +optional
	Status SessionStatus `json:"status,omitempty"`
}

// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object

// SessionList is a list of sessions.
type SessionList struct {
	metav1.TypeMeta `json:",inline"`
	// metadata is the standard list metadata.
	// +optional
	metav1.ListMeta `json:"metadata,omitempty"`
	// items are the sessions.
	Items []Session `json:"items"`
}

// SessionType says what a session belongs to.
// +enum
// +k8s:enum
type SessionType string

// Session types.
const (
	SessionTypeTask    SessionType = "task"
	SessionTypeChat    SessionType = "chat"
	SessionTypeGateway SessionType = "gateway"
)

// SessionSpec is what a session is.
type SessionSpec struct {
	// sessionType is what the session belongs to: task, chat or gateway. It cannot be changed.
	// +optional
	// +default="task"
	// +k8s:optional
	// +k8s:immutable
	SessionType SessionType `json:"sessionType,omitempty"`
}

// SessionStatus is what is observed of a session.
type SessionStatus struct {
	// activeTask is the name of the task that holds the session; empty when it is idle.
	// +optional
	ActiveTask string `json:"activeTask,omitempty"`
	// activeTaskUID is the UID of that task.
	// +optional
	ActiveTaskUID types.UID `json:"activeTaskUID,omitempty"`
	// waitingTasks are the tasks that wait for their turn, first come first; at most 100 are shown.
	// +optional
	// +listType=atomic
	WaitingTasks []string `json:"waitingTasks,omitempty"`
	// waitingCount is the number of tasks that wait for their turn.
	// +optional
	WaitingCount int32 `json:"waitingCount,omitempty"`
	// messageCount is the number of messages.
	// +optional
	// +k8s:optional
	// +k8s:minimum=0
	MessageCount int32 `json:"messageCount,omitempty"`
	// inputTokens is the sum of reported input tokens; absent means that none were reported.
	// +optional
	// +k8s:optional
	InputTokens *int64 `json:"inputTokens,omitempty"`
	// outputTokens is the sum of reported output tokens; absent means that none were reported.
	// +optional
	// +k8s:optional
	OutputTokens *int64 `json:"outputTokens,omitempty"`
	// cancelled is set when the session was deleted while a turn ran.
	// +optional
	Cancelled bool `json:"cancelled,omitempty"`
	// lastTurn is the id of the turn of a chat that was added last.
	// +optional
	LastTurn string `json:"lastTurn,omitempty"`
	// updatedAt is when the session last changed.
	// +optional
	// +k8s:optional
	UpdatedAt *metav1.Time `json:"updatedAt,omitempty"`
	// executionControl describes the runtime that the session is bound to.
	// +optional
	// +k8s:optional
	ExecutionControl *SessionExecutionControl `json:"executionControl,omitempty"`
	// conditions are the conditions of the object.
	// +optional
	// +k8s:optional
	// +listType=map
	// +listMapKey=type
	// +patchStrategy=merge
	// +patchMergeKey=type
	Conditions []metav1.Condition `json:"conditions,omitempty" patchStrategy:"merge" patchMergeKey:"type"`
}

// SessionExecutionControl describes the runtime that a session is bound to.
type SessionExecutionControl struct {
	// resourceVersion is the version of this record.
	// +optional
	ResourceVersion string `json:"resourceVersion,omitempty"`
	// sessionUID is the UID of the session at the runtime.
	// +optional
	SessionUID string `json:"sessionUID,omitempty"`
	// runtimePoolRef is the RuntimePool of the session.
	// +optional
	// +k8s:optional
	// +k8s:opaqueType
	RuntimePoolRef *NamespacedReference `json:"runtimePoolRef,omitempty"`
	// runtimeProfileDigest is the digest of the runtime's profile.
	// +optional
	RuntimeProfileDigest string `json:"runtimeProfileDigest,omitempty"`
	// generation counts the runtimes that the session has had.
	// +optional
	Generation int64 `json:"generation,omitempty"`
	// lifecycle is the runtime's word for where the session is in its life.
	// +optional
	Lifecycle string `json:"lifecycle,omitempty"`
	// availability is the runtime's word for whether the session can be used.
	// +optional
	Availability string `json:"availability,omitempty"`
	// mutationLeaseGeneration counts the leases to change the session.
	// +optional
	MutationLeaseGeneration int64 `json:"mutationLeaseGeneration,omitempty"`
	// blockedReason explains why the session cannot be used.
	// +optional
	BlockedReason string `json:"blockedReason,omitempty"`
	// relatedPromptAttemptID is the attempt that blocks the session.
	// +optional
	RelatedPromptAttemptID string `json:"relatedPromptAttemptID,omitempty"`
	// relatedPublicationID is the publication that blocks the session.
	// +optional
	RelatedPublicationID string `json:"relatedPublicationID,omitempty"`
	// lineage is where the session at the runtime comes from.
	// +optional
	// +k8s:optional
	Lineage *SessionLineage `json:"lineage,omitempty"`
}

// SessionLineage is where a session at a runtime comes from.
type SessionLineage struct {
	// namespaceUID is the UID of the namespace.
	// +optional
	NamespaceUID types.UID `json:"namespaceUID,omitempty"`
	// sessionUID is the UID of the session at the runtime.
	// +optional
	SessionUID string `json:"sessionUID,omitempty"`
	// contractVersion is the protocol with the runtime.
	// +optional
	ContractVersion string `json:"contractVersion,omitempty"`
	// generation is the generation of the session.
	// +optional
	Generation int64 `json:"generation,omitempty"`
	// runtimeIdentity identifies the runtime.
	// +optional
	RuntimeIdentity string `json:"runtimeIdentity,omitempty"`
	// configDigest is the digest of the runtime's configuration.
	// +optional
	ConfigDigest string `json:"configDigest,omitempty"`
	// establishedAt is when the session was established.
	// +optional
	// +k8s:optional
	EstablishedAt *metav1.Time `json:"establishedAt,omitempty"`
}

// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object

// SessionTranscript is a part of a session's messages: the answer of a get on
// sessions/transcript, and the body of a create there, which appends.
type SessionTranscript struct {
	metav1.TypeMeta `json:",inline"`
	// metadata is the standard list metadata. continue asks for the next part.
	// +optional
	metav1.ListMeta `json:"metadata,omitempty"`
	// messageCount is the number of messages of the whole transcript.
	// +optional
	MessageCount int64 `json:"messageCount,omitempty"`
	// truncated is set when older messages of the transcript have been left out for good.
	// +optional
	Truncated bool `json:"truncated,omitempty"`
	// items are the messages, oldest first.
	Items []SessionMessage `json:"items"`
}

// MessageRole says who speaks.
// +enum
// +k8s:enum
type MessageRole string

// Roles.
const (
	RoleSystem    MessageRole = "system"
	RoleUser      MessageRole = "user"
	RoleAssistant MessageRole = "assistant"
	RoleTool      MessageRole = "tool"
)

// SessionMessage is one message of a session's transcript. Messages are not
// part of the Session object: a transcript grows without bound.
type SessionMessage struct {
	// id identifies the message in the session.
	// +optional
	ID string `json:"id,omitempty"`
	// order is the place of the message in the session.
	// +optional
	Order int64 `json:"order,omitempty"`
	// role is system, user, assistant or tool.
	// +required
	Role MessageRole `json:"role"`
	// content is the text.
	// +optional
	Content string `json:"content,omitempty"`
	// name is the tool's name, in a tool message.
	// +optional
	Name string `json:"name,omitempty"`
	// input is the tool's input.
	// +optional
	// +k8s:optional
	// +k8s:opaqueType
	// +patchStrategy=replace
	Input *apiextensionsv1.JSON `json:"input,omitempty" patchStrategy:"replace"`
	// toolCalls are the calls that an assistant message asks for.
	// +optional
	// +listType=atomic
	ToolCalls []MessageToolCall `json:"toolCalls,omitempty"`
	// toolCallID is the call that a tool message answers.
	// +optional
	ToolCallID string `json:"toolCallID,omitempty"`
	// sourceType is the kind of thing that the message comes from, for example task.
	// +optional
	SourceType string `json:"sourceType,omitempty"`
	// sourceRef identifies what the message comes from.
	// +optional
	SourceRef string `json:"sourceRef,omitempty"`
	// metadata is anything else worth keeping with the message.
	// +optional
	Metadata map[string]string `json:"metadata,omitempty"`
	// ts is when the message was stored.
	// +optional
	Timestamp metav1.Time `json:"ts,omitempty"`
}

// MessageToolCall is a call that an assistant message asks for.
type MessageToolCall struct {
	// id correlates the call with its answer.
	// +required
	ID string `json:"id"`
	// name is the tool's name.
	// +required
	Name string `json:"name"`
	// arguments are the arguments as the model wrote them.
	// +optional
	Arguments string `json:"arguments,omitempty"`
}
