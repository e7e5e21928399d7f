// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object

// GatewayProbe is what the server finds when it looks at a gateway and asks its adapter. A controller creates one on gateways/probe. It is
// not stored.
type GatewayProbe struct {
	metav1.TypeMeta `json:",inline"`
	// metadata holds the name and the namespace of the gateway in an answer. In a create it is not used.
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`
	// generation is the generation of the gateway that was looked at.
	// +optional
	Generation int64 `json:"generation,omitempty"`
	// resolved is set when the Secrets and the adapter were found.
	// +optional
	Resolved bool `json:"resolved,omitempty"`
	// connected is set when the adapter answered and can do what the class asks for.
	// +optional
	Connected bool `json:"connected,omitempty"`
	// message says what is wrong.
	// +optional
	Message string `json:"message,omitempty"`
	// endpoint is the address of the adapter.
	// +optional
	Endpoint string `json:"endpoint,omitempty"`
	// inboundAuthSecretVersion is the version of the Secret with the token of the adapter.
	// +optional
	InboundAuthSecretVersion string `json:"inboundAuthSecretVersion,omitempty"`
	// outboundAuthSecretVersion is the version of the Secret with the token for the adapter.
	// +optional
	OutboundAuthSecretVersion string `json:"outboundAuthSecretVersion,omitempty"`
	// capabilities are what the adapter says of itself.
	// +optional
	// +k8s:optional
	Capabilities *GatewayObservedCapabilities `json:"capabilities,omitempty"`
}

// +genclient
// +genclient:onlyVerbs=create
// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object

// GatewayRecordQuery asks for records of gateways, the newest first. It is answered with the same object, filled in, and not stored.
type GatewayRecordQuery struct {
	metav1.TypeMeta `json:",inline"`
	// metadata has the namespace.
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`
	// spec is what is asked for.
	// +required
	Spec GatewayRecordQuerySpec `json:"spec"`
	// status is the answer.
	// +optional
	Status GatewayRecordQueryStatus `json:"status,omitempty"`
}

// GatewayRecordQuerySpec is what is asked for. A member that is empty selects all.
type GatewayRecordQuerySpec struct {
	// records is events or deliveries.
	// +required
	// +k8s:required
	Records GatewayRecords `json:"records"`
	// gateway is the name of a gateway.
	// +optional
	Gateway string `json:"gateway,omitempty"`
	// binding is the name of a binding.
	// +optional
	Binding string `json:"binding,omitempty"`
	// session is the name of a session.
	// +optional
	Session string `json:"session,omitempty"`
	// task is the name of a task.
	// +optional
	Task string `json:"task,omitempty"`
	// event is the name of an event; for deliveries only.
	// +optional
	Event string `json:"event,omitempty"`
	// states are the states that are asked for.
	// +optional
	// +k8s:optional
	// +k8s:maxItems=16
	// +listType=set
	States []string `json:"states,omitempty"`
	// limit is the most records of one answer, from 1 to 500; 0 means 500.
	// +optional
	// +k8s:optional
	// +k8s:minimum=0
	// +k8s:maximum=500
	Limit int32 `json:"limit,omitempty"`
	// cursor is where to go on: the continue of the answer before.
	// +optional
	// +k8s:optional
	// +k8s:maxLength=1024
	Cursor string `json:"cursor,omitempty"`
}

// GatewayRecords are records of gateways.
// +enum
// +k8s:enum
type GatewayRecords string

// Values of GatewayRecords.
const (
	GatewayRecordsEvents     GatewayRecords = "events"
	GatewayRecordsDeliveries GatewayRecords = "deliveries"
)

// GatewayRecordQueryStatus is the answer to a query.
type GatewayRecordQueryStatus struct {
	// events are the events, the newest first.
	// +optional
	// +listType=atomic
	Events []GatewayEvent `json:"events,omitempty"`
	// deliveries are the deliveries, the newest first.
	// +optional
	// +listType=atomic
	Deliveries []GatewayDelivery `json:"deliveries,omitempty"`
	// continue goes on where the answer ends; empty at the end.
	// +optional
	Continue string `json:"continue,omitempty"`
}
