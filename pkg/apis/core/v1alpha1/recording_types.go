// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// RecordingMode says how much of what a run said and did is kept beside its events.
// +enum
// +k8s:enum
type RecordingMode string

// Modes of a recording.
const (
	// RecordingFull keeps what the model was asked, what it answered, and what tools got and returned.
	RecordingFull RecordingMode = "Full"
	// RecordingDigests keeps sizes and SHA-256 digests of it.
	RecordingDigests RecordingMode = "Digests"
	// RecordingOff keeps nothing.
	RecordingOff RecordingMode = "Off"
)

// AgentRecording says how the tasks of an agent are recorded.
type AgentRecording struct {
	// mode is Full, Digests or Off. Without it the server's default counts (--recording-mode).
	// +optional
	// +k8s:optional
	Mode RecordingMode `json:"mode,omitempty"`
}

// EventRecording is what a worker sends with an event to be recorded. It is never a part of a stored event.
//
// What a run says consists of parts, which the worker numbers from 0 in the order in which it sends them, anew in each attempt. A part
// is sent once. Later events name it by its number.
type EventRecording struct {
	// mode is that of the agent; empty for the server's default.
	// +optional
	Mode RecordingMode `json:"mode,omitempty"`
	// first is the number of the first of the parts.
	// +optional
	First int32 `json:"first,omitempty"`
	// parts are new.
	// +optional
	// +listType=atomic
	Parts []RecordedPart `json:"parts,omitempty"`
	// conversation are the messages of a model request, in their order.
	// +optional
	// +listType=atomic
	Conversation []RecordedRange `json:"conversation,omitempty"`
	// tools is the number of the part with the tools that were offered to the model; absent for none.
	// +optional
	// +k8s:optional
	Tools *int32 `json:"tools,omitempty"`
	// parameters are those of a model request.
	// +optional
	// +k8s:optional
	Parameters *RecordedParameters `json:"parameters,omitempty"`
	// message is the number of the part that the event is about: the answer of the model, the answer that calls a tool, or the
	// result of the call. Absent for a model request.
	// +optional
	// +k8s:optional
	Message *int32 `json:"message,omitempty"`
	// toolCallID is the call in the message that the event is about.
	// +optional
	ToolCallID string `json:"toolCallID,omitempty"`
}

// RecordedRange is a range of parts by their numbers.
type RecordedRange struct {
	// from is the first number.
	From int32 `json:"from"`
	// to is the last number.
	To int32 `json:"to"`
}

// RecordedParameters are the parameters of a model request.
type RecordedParameters struct {
	// maxTokens bounds the answer; absent if the vendor bounds it.
	// +optional
	MaxTokens int64 `json:"maxTokens,omitempty"`
	// temperature as it was sent; absent for the vendor's default.
	// +optional
	Temperature string `json:"temperature,omitempty"`
	// format is the form of the answer that was asked for, as JSON; empty for a text.
	// +optional
	Format string `json:"format,omitempty"`
}

// RecordedPart is a message, or the list of tools that a model was offered.
type RecordedPart struct {
	// message is set for a message.
	// +optional
	// +k8s:optional
	Message *RecordedMessage `json:"message,omitempty"`
	// tools is set for a list of tools.
	// +optional
	// +listType=atomic
	Tools []RecordedTool `json:"tools,omitempty"`
	// digest is the SHA-256 of the content without secrets, in hexadecimal digits. The server sets it.
	// +optional
	Digest string `json:"digest,omitempty"`
	// bytes is the size of the content. The server sets it.
	// +optional
	Bytes int64 `json:"bytes,omitempty"`
	// omitted says why the content is not there: DigestsOnly, TooLarge, LimitReached, or Missing.
	// +optional
	Omitted string `json:"omitted,omitempty"`
}

// RecordedMessage is one message of a conversation, without secrets.
type RecordedMessage struct {
	// role is system, user, assistant or tool.
	Role string `json:"role"`
	// thinking is what the model thought before it said it, as far as its vendor shows it.
	// +optional
	Thinking string `json:"thinking,omitempty"`
	// text is what was said, or the result of a call.
	// +optional
	Text string `json:"text,omitempty"`
	// toolCalls are the calls that the model asks for.
	// +optional
	// +listType=atomic
	ToolCalls []RecordedToolCall `json:"toolCalls,omitempty"`
	// toolCallID is the call that this message answers.
	// +optional
	ToolCallID string `json:"toolCallID,omitempty"`
	// failed is set on the result of a call that failed.
	// +optional
	Failed bool `json:"failed,omitempty"`
	// images are the images of the message.
	// +optional
	// +listType=atomic
	Images []RecordedImage `json:"images,omitempty"`
}

// RecordedToolCall is a call of a tool as the model wrote it, without secrets.
type RecordedToolCall struct {
	// id correlates the call with its result.
	ID string `json:"id"`
	// name is the tool.
	Name string `json:"name"`
	// arguments are the arguments as text; usually, but not always, a JSON object.
	// +optional
	Arguments string `json:"arguments,omitempty"`
}

// RecordedImage describes an image, which is not kept itself.
type RecordedImage struct {
	// mediaType is the media type.
	// +optional
	MediaType string `json:"mediaType,omitempty"`
	// digest is the SHA-256 of the image or of its address, in hexadecimal digits.
	Digest string `json:"digest"`
	// bytes is its size; 0 for an address.
	// +optional
	Bytes int64 `json:"bytes,omitempty"`
}

// RecordedTool is a tool that a model was offered.
type RecordedTool struct {
	// name is the tool.
	Name string `json:"name"`
	// description is what the model was told.
	// +optional
	Description string `json:"description,omitempty"`
	// parameters is the JSON Schema of the arguments.
	// +optional
	// +k8s:opaqueType
	// +patchStrategy=replace
	Parameters *apiextensionsv1.JSON `json:"parameters,omitempty" patchStrategy:"replace"`
}

// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object

// TaskRecording is the answer of a get on tasks/recording: the events of the task beside which something is recorded, in their order
// (with the query parameter before: the newest first), without its content; or, with the seq of an event after the path, this event with all of it.
type TaskRecording struct {
	metav1.TypeMeta `json:",inline"`
	// metadata holds the name and the namespace of the task.
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`
	// forkedFrom is set if the task is a fork: what was said before it is recorded of another task.
	// +optional
	// +k8s:optional
	ForkedFrom *RecordedSource `json:"forkedFrom,omitempty"`
	// bytes is what is kept of the task.
	// +optional
	Bytes int64 `json:"bytes,omitempty"`
	// entries are the recorded events.
	// +listType=atomic
	Entries []RecordedEntry `json:"entries"`
	// continue is where the next page begins (query parameter after); absent on the last one.
	// +optional
	Continue int64 `json:"continue,omitempty"`
	// prevSeq is where the next older page ends (query parameter before), of a page that has the newest event first; absent on the
	// oldest one.
	// +optional
	PrevSeq int64 `json:"prevSeq,omitempty"`
}

// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object

// RequestRecording is the answer of a get on usagemeasurements/recording: what a model was asked by a chat or by a client of a vendor's
// API, and what it answered. It is there for requests that began while their namespace had the label core.platform.ai/record-requests.
type RequestRecording struct {
	metav1.TypeMeta `json:",inline"`
	// metadata holds the name and the namespace of the measurement.
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`
	// conversation is what the model was asked, in its order.
	// +optional
	// +listType=atomic
	Conversation []RecordedPart `json:"conversation,omitempty"`
	// tools is the part with the tools that the model was offered.
	// +optional
	// +k8s:optional
	Tools *RecordedPart `json:"tools,omitempty"`
	// parameters are those of the request.
	// +optional
	// +k8s:optional
	Parameters *RecordedParameters `json:"parameters,omitempty"`
	// answer is what the model answered; absent if no answer came.
	// +optional
	// +k8s:optional
	Answer *RecordedPart `json:"answer,omitempty"`
}

// RecordedSource is the event of another task after which a fork goes on.
type RecordedSource struct {
	// task is the name of the other task, in the same namespace.
	Task string `json:"task"`
	// uid is its UID: a task of the name with another UID is not the source.
	UID types.UID `json:"uid"`
	// seq is the event.
	Seq int64 `json:"seq"`
}

// RecordedEntry is what is recorded beside an event.
type RecordedEntry struct {
	// seq is the event.
	Seq int64 `json:"seq"`
	// type is the type of the event.
	Type EventType `json:"type"`
	// attempt is the attempt of the task that recorded it.
	// +optional
	Attempt int32 `json:"attempt,omitempty"`
	// match are the words around what was searched for (query parameter q), on one line.
	// +optional
	Match string `json:"match,omitempty"`
	// conversation is what the model was asked, in its order.
	// +optional
	// +listType=atomic
	Conversation []RecordedPart `json:"conversation,omitempty"`
	// tools is the part with the tools that the model was offered.
	// +optional
	// +k8s:optional
	Tools *RecordedPart `json:"tools,omitempty"`
	// parameters are those of the model request.
	// +optional
	// +k8s:optional
	Parameters *RecordedParameters `json:"parameters,omitempty"`
	// message is the answer of the model, or the result of the call.
	// +optional
	// +k8s:optional
	Message *RecordedPart `json:"message,omitempty"`
	// toolCall is the call that the event is about.
	// +optional
	// +k8s:optional
	ToolCall *RecordedToolCall `json:"toolCall,omitempty"`
}
