// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// +genclient
// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object

// GatewayIdentity says who a sender of a gateway is: the user in whose name that sender decides on approvals from a conversation. Whoever
// writes one needs the verb impersonate on that user and on each of its groups.
type GatewayIdentity struct {
	metav1.TypeMeta `json:",inline"`
	// metadata is the standard object metadata.
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`
	// spec is what is wanted.
	// +required
	Spec GatewayIdentitySpec `json:"spec"`
}

// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object

// GatewayIdentityList is a list of gateway identities.
type GatewayIdentityList struct {
	metav1.TypeMeta `json:",inline"`
	// metadata is the standard list metadata.
	// +optional
	metav1.ListMeta `json:"metadata,omitempty"`
	// items are the gateway identities.
	Items []GatewayIdentity `json:"items"`
}

// GatewayIdentitySpec says who a sender is. It cannot be changed: make another one.
type GatewayIdentitySpec struct {
	// gatewayRef is a Gateway of the same namespace.
	// +required
	GatewayRef LocalReference `json:"gatewayRef"`
	// accountId is the account of the chat system, of at most 256 bytes.
	// +required
	// +k8s:required
	AccountID string `json:"accountId"`
	// senderId is the sender in it, of at most 256 bytes.
	// +required
	// +k8s:required
	SenderID string `json:"senderId"`
	// username is the name of the user.
	// +required
	// +k8s:required
	// +k8s:maxLength=512
	Username string `json:"username"`
	// groups are the groups of the user.
	// +optional
	// +k8s:optional
	// +k8s:maxItems=64
	// +listType=set
	Groups []string `json:"groups,omitempty"`
}
