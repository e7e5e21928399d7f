// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object

// TaskReply is something that a task says in the conversation that it answers, while it runs. A create on tasks/reply makes a delivery of it,
// which the gateway posts before the answer. Only a task that answers an event of a gateway can reply, and only if the adapter can post texts
// while a task runs.
type TaskReply struct {
	metav1.TypeMeta `json:",inline"`
	// metadata is not used.
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`
	// spec is what to say.
	// +required
	Spec TaskReplySpec `json:"spec"`
	// status says what was made of it.
	// +optional
	Status TaskReplyStatus `json:"status,omitempty"`
}

// TaskReplySpec is what to say.
type TaskReplySpec struct {
	// text is what to say, at most 16,384 characters.
	// +required
	// +k8s:required
	Text string `json:"text"`
	// messageID is chosen by the sender, at most 128 characters. A text that is sent again with the same one is posted once.
	// +required
	// +k8s:required
	// +k8s:maxLength=128
	MessageID string `json:"messageID"`
}

// TaskReplyStatus says what was made of a reply.
type TaskReplyStatus struct {
	// delivery is the GatewayDelivery of the text.
	// +optional
	// +k8s:optional
	// +k8s:maxLength=253
	Delivery string `json:"delivery,omitempty"`
}
