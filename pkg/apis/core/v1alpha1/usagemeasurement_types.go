// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// +genclient
// +genclient:onlyVerbs=get,list
// +genclient:method=GetRecording,verb=get,subresource=recording,result=RequestRecording
// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object

// UsageMeasurement is what the server recorded about one request to a model, or about one counter of an agent. Its start
// is recorded before the request is sent, and its final usage after that. The server alone writes measurements, and they
// outlive their tasks. Whoever reads them needs to list the tasks, the repositorymonitors and the sessions of the
// namespace, as for a UsageReport. Lists are ordered by the start of the requests.
type UsageMeasurement struct {
	metav1.TypeMeta `json:",inline"`
	// metadata is the standard object metadata; the name is the id that reports show, and creationTimestamp the start.
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`
	// spec is what was measured.
	Spec UsageMeasurementSpec `json:"spec"`
	// status is what is known about it.
	// +optional
	Status UsageMeasurementStatus `json:"status,omitempty"`
}

// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object

// UsageMeasurementList is a list of measurements, the oldest first.
type UsageMeasurementList struct {
	metav1.TypeMeta `json:",inline"`
	// metadata is the standard list metadata. Its resourceVersion is the time as of which the list was made, in
	// nanoseconds since 1970.
	// +optional
	metav1.ListMeta `json:"metadata,omitempty"`
	// items are the measurements.
	Items []UsageMeasurement `json:"items"`
}

// UsageMeasurementSpec says what was measured.
type UsageMeasurementSpec struct {
	// taskUID is the UID of the task; empty for chats and clients of the vendors' APIs.
	// +optional
	TaskUID types.UID `json:"taskUID,omitempty"`
	// taskName is the name of the task.
	// +optional
	TaskName string `json:"taskName,omitempty"`
	// sessionName is the session of the task or of the chat.
	// +optional
	SessionName string `json:"sessionName,omitempty"`
	// attemptID is the attempt of the task, from 1, or the id of the caller's request.
	// +optional
	AttemptID string `json:"attemptID,omitempty"`
	// counterID is the request within the attempt, or the name of a counter.
	// +optional
	CounterID string `json:"counterID,omitempty"`
	// scope is call, attempt or session.
	Scope string `json:"scope"`
	// source is provider, agent or estimate.
	Source string `json:"source"`
	// provider is the Provider.
	// +optional
	Provider string `json:"provider,omitempty"`
	// model is the model that was asked.
	// +optional
	Model string `json:"model,omitempty"`
	// user is the caller of a chat or of a vendor's API; empty for tasks.
	// +optional
	User string `json:"user,omitempty"`
}

// UsageMeasurementStatus is what is known. A count is null if it was not reported, which does not mean zero.
type UsageMeasurementStatus struct {
	// state is started, completed, failed, cancelled or unattributed.
	State string `json:"state"`
	// inputTokens is all input, including what a cache supplied or took.
	// +optional
	// +nullable
	InputTokens *int64 `json:"inputTokens"`
	// outputTokens is all output.
	// +optional
	// +nullable
	OutputTokens *int64 `json:"outputTokens"`
	// cachedInputTokens is the part of the input that was read from a cache.
	// +optional
	// +nullable
	CachedInputTokens *int64 `json:"cachedInputTokens"`
	// cacheWriteInputTokens is the part of the input that was written to a cache.
	// +optional
	// +nullable
	CacheWriteInputTokens *int64 `json:"cacheWriteInputTokens"`
	// complete is set if the counts are final and both input and output are known.
	Complete bool `json:"complete"`
	// gap says what is missing; empty if nothing is, or if the request may still end.
	// +optional
	Gap string `json:"gap,omitempty"`
	// startedAt is when the request, or the counter, began.
	StartedAt metav1.MicroTime `json:"startedAt"`
	// observedAt is when this state was recorded.
	ObservedAt metav1.MicroTime `json:"observedAt"`
}
