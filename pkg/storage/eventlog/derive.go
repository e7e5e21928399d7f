// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package eventlog

import (
	"time"

	"github.com/platform-ai/platform/pkg/apis/core/v1alpha1"
	"github.com/platform-ai/platform/pkg/event"
)

// derive records metrics for the times and failures that the stored events report. It keeps no state: the
// event that another one ends is found in the index of types, so restarts do not matter.
func (w *Writer) derive(t *appendTxn) {
	for i := range t.events {
		p := &t.events[i]
		if !p.fresh {
			continue
		}
		if c, ok := event.FailureCategory(p.event); ok {
			w.metrics.broken.WithLabelValues(c, string(p.event.Type)).Inc()
		}
		measure, result, took, ok := event.Reported(p.event)
		if !ok {
			measure, result, took, ok = w.between(t.head.no, p)
		}
		if ok {
			w.metrics.derived.WithLabelValues(measure, result).Observe(took.Seconds())
		}
	}
}

// between measures the time since the event to which this one is the end. If that event cannot be read,
// nothing is measured: no append fails because of a metric.
func (w *Writer) between(no uint64, p *pending) (measure, result string, took time.Duration, ok bool) {
	var since v1alpha1.EventType
	switch typ := p.event.Type; {
	case typ == v1alpha1.EventTaskStarted:
		first, err := w.firstOf(no, p.typ, p.seq)
		if err != nil || first.rev != 0 {
			return "", "", 0, false // a later attempt
		}
		since, measure, result = v1alpha1.EventTaskCreated, event.MeasureQueue, event.ResultSucceeded
	case event.Terminal(typ):
		since, measure, result = v1alpha1.EventTaskStarted, event.MeasureRun, event.EndResult(typ)
	default:
		return "", "", 0, false
	}
	first, err := w.firstOf(no, typeCodes[since], p.seq)
	if err != nil || first.rev == 0 {
		return "", "", 0, false
	}
	took = time.Duration(p.entry.header.created-first.created) * time.Microsecond
	return measure, result, took, took >= 0
}
