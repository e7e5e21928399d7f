// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package eventlog

import (
	"github.com/platform-ai/platform/pkg/apis/core/v1alpha1"
	"github.com/platform-ai/platform/pkg/event"
)

// Sanitized are events as they will be stored, without what the append itself decides. Only Sanitize makes them. Callers who
// decide by the content of events thus read what the log stores, and each event is sanitized once.
type Sanitized struct {
	events  []*v1alpha1.ExecutionEvent
	reports []event.Report
}

// Sanitize returns sanitized copies of events that event.Validate has accepted. They can be appended once.
func Sanitize(valid []*v1alpha1.ExecutionEvent) Sanitized {
	s := Sanitized{make([]*v1alpha1.ExecutionEvent, len(valid)), make([]event.Report, len(valid))}
	for i, e := range valid {
		s.events[i] = e.DeepCopy()
		s.reports[i] = event.Sanitize(s.events[i])
	}
	return s
}

// Events are the events, which are read-only.
func (s Sanitized) Events() []*v1alpha1.ExecutionEvent { return s.events }
