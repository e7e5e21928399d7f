// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object

// ExecutionEventPage is the answer of a get on tasks/events and sessions/events:
// a part of one stream, by its own sequence.
type ExecutionEventPage struct {
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
	// streamUID is the UID of the task or session, which tells it from an earlier or later one of that name.
	// +optional
	StreamUID types.UID `json:"streamUID,omitempty"`
	// afterSeq is the sequence that was asked for; all events are larger. It is 0 if the stream has not reached that; see gap.
	// +required
	AfterSeq int64 `json:"afterSeq"`
	// latestSeq is the newest sequence of the whole stream, 0 when it is empty.
	// +required
	LatestSeq int64 `json:"latestSeq"`
	// nextSeq is what to ask for next, where it is larger than the last event's sequence: a filter or a search has
	// looked that far.
	// +optional
	NextSeq int64 `json:"nextSeq,omitempty"`
	// beforeSeq is the sequence that was asked for with before; all events are smaller.
	// +optional
	BeforeSeq int64 `json:"beforeSeq,omitempty"`
	// prevSeq is what to ask for as before to get the page of older events. Only pages of before, order=desc and around
	// have it, and only if there may be older events.
	// +optional
	PrevSeq int64 `json:"prevSeq,omitempty"`
	// oldestSeq is the first sequence of a task's stream that is kept. Only pages of before, order=desc and around have it.
	// +optional
	OldestSeq int64 `json:"oldestSeq,omitempty"`
	// gap is the first run of events after afterSeq that are no longer kept. With the reason ahead, the stream has not reached
	// the sequence that was asked for, and the page is that of its beginning.
	// +optional
	// +k8s:optional
	Gap *EventGap `json:"gap,omitempty"`
	// gaps are all of them up to the end of this page, where there are more than one. In a task's stream there
	// can only be one, at its beginning; in a session each deleted task may leave some.
	// +optional
	// +k8s:optional
	// +listType=atomic
	Gaps []EventGap `json:"gaps,omitempty"`
	// events are the events in sequence order, without apiVersion, kind, metadata and dedupKey. On pages of before and
	// order=desc the newest comes first.
	// +listType=atomic
	Events []ExecutionEvent `json:"events"`
}

// EventGap is a range of a stream that is no longer kept, or that the stream has not reached.
type EventGap struct {
	// fromSeq is the first sequence that is gone.
	// +required
	FromSeq int64 `json:"fromSeq"`
	// toSeq is the last sequence that is gone.
	// +required
	ToSeq int64 `json:"toSeq"`
	// reason is why: retention, or ahead if the position that was asked for is not one of this stream. Such a position belongs to
	// an earlier task or session of that name, to the store before a restore, or to another kind of stream.
	// +required
	Reason string `json:"reason"`
}

// GapRetention is the reason of a gap that a retention policy made.
const GapRetention = "retention"

// GapAhead is the reason of a gap between the end of a stream and a position that it has not reached.
const GapAhead = "ahead"
