// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// ToSiblings is the recipient that stands for all siblings of the sender.
const ToSiblings = "*"

// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object

// TaskMessage is a message from one task to another of its family: to a sibling, which has the same parent, to the
// parent, or to a child. A create on tasks/messages of the sender sends it. Each recipient gets it as an event of type
// TaskMessageReceived in its own stream, so it goes when the recipient is deleted.
type TaskMessage struct {
	metav1.TypeMeta `json:",inline"`
	// metadata is not used.
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`
	// spec is what to send to whom.
	// +required
	Spec TaskMessageSpec `json:"spec"`
	// status says who has got it.
	// +optional
	Status TaskMessageStatus `json:"status,omitempty"`
}

// TaskMessageSpec is what to send to whom.
type TaskMessageSpec struct {
	// toTask is the name of the recipient, or "*" for all siblings of the sender that have not ended.
	// +required
	ToTask string `json:"toTask"`
	// content is the text, at most 16,384 characters.
	// +required
	Content string `json:"content"`
	// parentTask is the parent of the family that the message belongs to. The server knows it; a value that differs is
	// refused.
	// +optional
	ParentTask string `json:"parentTask,omitempty"`
	// messageID is chosen by the sender, at most 128 characters. A message that is sent again with the same one is delivered
	// once.
	// +optional
	MessageID string `json:"messageID,omitempty"`
}

// TaskMessageStatus says who has got a message.
type TaskMessageStatus struct {
	// recipients are the tasks that have got the message.
	// +optional
	// +k8s:optional
	// +listType=atomic
	Recipients []string `json:"recipients,omitempty"`
	// full are the siblings that have not got it, because they have too many messages.
	// +optional
	// +k8s:optional
	// +listType=atomic
	Full []string `json:"full,omitempty"`
}

// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object

// TaskInbox shows the messages that a task has not read yet, the oldest first. A get changes nothing. A create, which
// the task's own worker makes, marks messages as read unless markRead is false.
type TaskInbox struct {
	metav1.TypeMeta `json:",inline"`
	// metadata holds the name and the namespace of the task in an answer. In a create it is not used.
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`
	// spec is what to read.
	// +optional
	Spec TaskInboxSpec `json:"spec,omitempty"`
	// status is what there is to read.
	// +optional
	Status TaskInboxStatus `json:"status,omitempty"`
}

// TaskInboxSpec is what to read.
type TaskInboxSpec struct {
	// markRead says whether what is returned counts as read; the default is true.
	// +optional
	// +k8s:optional
	// +default=true
	MarkRead *bool `json:"markRead,omitempty"`
	// through marks all messages up to this number as read, and returns none.
	// +optional
	Through int64 `json:"through,omitempty"`
	// parentTask is the parent of the family; a value that is neither the parent of the task nor the task itself is refused.
	// +optional
	ParentTask string `json:"parentTask,omitempty"`
}

// TaskInboxStatus is what there is to read.
type TaskInboxStatus struct {
	// messages are the oldest unread messages, at most 20.
	// +optional
	// +k8s:optional
	// +listType=atomic
	Messages []ReceivedMessage `json:"messages,omitempty"`
	// unread is the number of messages that are still unread.
	// +required
	Unread int64 `json:"unread"`
}

// ReceivedMessage is a message in the inbox of a task.
type ReceivedMessage struct {
	// id is the name of the event that holds the message.
	// +required
	ID string `json:"id"`
	// number counts the messages of the recipient, from 1.
	// +required
	Number int64 `json:"number"`
	// namespace is that of both tasks.
	// +required
	Namespace string `json:"namespace"`
	// fromTask is the sender.
	// +required
	FromTask string `json:"fromTask"`
	// toTask is the recipient.
	// +required
	ToTask string `json:"toTask"`
	// parentTask is the parent of the family that the message belongs to.
	// +required
	ParentTask string `json:"parentTask"`
	// content is the text, without secrets.
	// +required
	Content string `json:"content"`
	// read is set if the message counts as read from now on.
	// +required
	Read bool `json:"read"`
	// createdAt is when the message was sent.
	// +required
	CreatedAt metav1.MicroTime `json:"createdAt"`
}
