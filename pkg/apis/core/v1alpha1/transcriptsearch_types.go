// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// +genclient
// +genclient:onlyVerbs=create
// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object

// TranscriptSearch finds messages of sessions. It is answered and not stored. A worker searches the sessions that its
// task may read.
type TranscriptSearch struct {
	metav1.TypeMeta `json:",inline"`
	// metadata is the standard object metadata; only the namespace is used.
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`
	// spec is what to find.
	// +required
	Spec TranscriptSearchSpec `json:"spec"`
	// status is what was found.
	// +optional
	Status TranscriptSearchStatus `json:"status,omitempty"`
}

// TranscriptSearchSpec is what to find.
type TranscriptSearchSpec struct {
	// query is text: messages with any of its words are found, the best matches first.
	// +required
	// +k8s:required
	// +k8s:maxLength=4096
	Query string `json:"query"`
	// sessionName searches one session only.
	// +optional
	SessionName string `json:"sessionName,omitempty"`
	// excludeSessionName leaves out one session.
	// +optional
	ExcludeSessionName string `json:"excludeSessionName,omitempty"`
	// roles are the roles of the messages to find; all roles if there are none.
	// +optional
	// +k8s:optional
	// +k8s:maxItems=4
	// +listType=atomic
	Roles []MessageRole `json:"roles,omitempty"`
	// limit is how many messages are returned: 10 by default, at most 50.
	// +optional
	Limit int32 `json:"limit,omitempty"`
	// maxSnippetLength is the length of each snippet in characters: 360 by default, at most 4096.
	// +optional
	MaxSnippetLength int32 `json:"maxSnippetLength,omitempty"`
}

// TranscriptSearchStatus is what a search found.
type TranscriptSearchStatus struct {
	// items are the messages, the best first.
	// +optional
	// +k8s:optional
	// +listType=atomic
	Items []TranscriptMatch `json:"items,omitempty"`
}

// TranscriptMatch is a message that was found.
type TranscriptMatch struct {
	// sessionName is the session.
	// +required
	SessionName string `json:"sessionName"`
	// messageId is the place of the message in its session.
	// +required
	MessageID int64 `json:"messageId"`
	// stableMessageId is the id of the message.
	// +required
	StableMessageID string `json:"stableMessageId"`
	// role is who speaks.
	// +required
	Role MessageRole `json:"role"`
	// name is the tool's name, in a tool message.
	// +optional
	Name string `json:"name,omitempty"`
	// snippet is the part of the text around the first match.
	// +required
	Snippet string `json:"snippet"`
	// createdAt is when the message was stored.
	// +optional
	// +k8s:optional
	CreatedAt *metav1.Time `json:"createdAt,omitempty"`
	// score ranks the match among those of the same search: BM25 in thousandths.
	// +optional
	Score int64 `json:"score,omitempty"`
}
