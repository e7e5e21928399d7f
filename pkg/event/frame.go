// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package event

import "github.com/platform-ai/platform/pkg/apis/core/v1alpha1"

// Names of the frames of an event stream.
const (
	FrameEvent    = "execution_event"
	FrameComplete = "stream_complete"
	FrameGap      = "gap"
	FrameError    = "error"
)

// Types that only the last frame of a stream has: the task or the session that the stream belonged to
// was deleted.
const (
	TaskDeleted    v1alpha1.EventType = "TaskDeleted"
	SessionDeleted v1alpha1.EventType = "SessionDeleted"
)

// Complete is the data of the last frame of a stream.
type Complete struct {
	LastSeq int64 `json:"lastSeq"`
	// Type is the type of the terminal event, TaskDeleted or SessionDeleted.
	Type v1alpha1.EventType `json:"type"`
}

// Failure is the data of an error frame.
type Failure struct {
	// Code is an HTTP status code.
	Code    int32  `json:"code"`
	Message string `json:"message"`
}
