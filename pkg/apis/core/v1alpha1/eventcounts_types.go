// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object

// ExecutionEventCounts is the answer of a get on tasks/events/counts and sessions/events/counts: how many events of a task or of
// the tasks of a session are kept, in total and in periods of equal length. Its cost does not depend on how many there are.
type ExecutionEventCounts struct {
	metav1.TypeMeta `json:",inline"`
	// metadata is the standard object metadata; it is not used.
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty,omitzero"`
	// namespace is the namespace of the stream.
	// +required
	StreamNamespace string `json:"namespace"`
	// streamType is task or session.
	// +required
	StreamType StreamType `json:"streamType"`
	// streamID is the name of the task or session.
	// +required
	StreamID string `json:"streamID"`
	// oldestSeq is the first sequence that is kept, 0 if there are no events.
	// +required
	OldestSeq int64 `json:"oldestSeq"`
	// latestSeq is the newest sequence, 0 if there are no events.
	// +required
	LatestSeq int64 `json:"latestSeq"`
	// total is the number of the selected events that are kept.
	// +required
	Total int64 `json:"total"`
	// types are the numbers of all kept events by type.
	// +required
	Types map[EventType]int64 `json:"types"`
	// severities are the numbers of all kept events by severity.
	// +required
	Severities map[EventSeverity]int64 `json:"severities"`
	// firstAt is when the oldest kept event was stored.
	// +optional
	// +k8s:optional
	FirstAt *metav1.MicroTime `json:"firstAt,omitempty"`
	// lastAt is when the newest event was stored.
	// +optional
	// +k8s:optional
	LastAt *metav1.MicroTime `json:"lastAt,omitempty"`
	// approximate is true if up to 255 events around the bounds of some buckets may be counted in the neighbouring one. Sums
	// are exact all the same.
	// +optional
	Approximate bool `json:"approximate,omitempty"`
	// buckets divide the time from firstAt to lastAt, if they were asked for. Periods without selected events are left out.
	// +optional
	// +k8s:optional
	// +listType=atomic
	Buckets []ExecutionEventBucket `json:"buckets,omitempty"`
}

// ExecutionEventBucket is the number of events in a period.
type ExecutionEventBucket struct {
	// from is when the period begins.
	// +required
	From metav1.MicroTime `json:"from"`
	// to is when the period ends. An event at this time belongs to the next one.
	// +required
	To metav1.MicroTime `json:"to"`
	// seq is the sequence of the first event of the period; if the counts are approximate, about that.
	// +required
	Seq int64 `json:"seq"`
	// total is the number of the selected events.
	// +required
	Total int64 `json:"total"`
	// types are the numbers of all events by type.
	// +required
	Types map[EventType]int64 `json:"types"`
	// severities are the numbers of all events by severity.
	// +required
	Severities map[EventSeverity]int64 `json:"severities"`
}
