// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package eventlog

import (
	"errors"
	"time"

	"github.com/platform-ai/platform/pkg/apis/core/v1alpha1"
	"github.com/platform-ai/platform/pkg/event"
)

// derive notes what the events that were stored tell of times and failures. It
// keeps no state: what an event ends is found by the index of types, so a restart
// in between changes nothing.
func (l *Log) derive(t *appendTxn) {
	for i := range t.events {
		p := &t.events[i]
		if !p.fresh {
			continue
		}
		if c, ok := event.FailureCategory(p.event); ok {
			l.metrics.broken.WithLabelValues(c, string(p.event.Type)).Inc()
		}
		measure, result, took, ok := event.Reported(p.event)
		if !ok {
			measure, result, took, ok = l.between(t.head.no, p)
		}
		if ok {
			l.metrics.derived.WithLabelValues(measure, result).Observe(took.Seconds())
		}
	}
}

// between measures the time since the event that this one follows up. What cannot
// be read is not measured: no append fails for a metric.
func (l *Log) between(no uint64, p *pending) (measure, result string, took time.Duration, ok bool) {
	var since v1alpha1.EventType
	switch typ := p.event.Type; {
	case typ == v1alpha1.EventTaskStarted:
		first, err := l.firstOf(no, typ, p.seq)
		if err != nil || first.rev != 0 {
			return "", "", 0, false // a later attempt
		}
		since, measure, result = v1alpha1.EventTaskCreated, event.MeasureQueue, event.ResultSucceeded
	case event.Terminal(typ):
		since, measure, result = v1alpha1.EventTaskStarted, event.MeasureRun, event.EndResult(typ)
	default:
		return "", "", 0, false
	}
	first, err := l.firstOf(no, since, p.seq)
	if err != nil || first.rev == 0 {
		return "", "", 0, false
	}
	took = time.Duration(p.entry.header.created-first.created) * time.Microsecond
	return measure, result, took, took >= 0
}

// firstOf returns the header of the first event of a type before a seq; it is zero
// when there is none.
func (l *Log) firstOf(no uint64, typ v1alpha1.EventType, before int64) (h header, err error) {
	code := typeCodes[typ]
	it, err := l.engine.NewIter(facetKey(no, code, 1), facetKey(no, code, before))
	if err != nil {
		return header{}, err
	}
	defer func() { err = errors.Join(err, it.Close()) }()
	if !it.First() {
		return header{}, nil
	}
	p, err := parseFacet(it.Key(), it.Value())
	if err != nil {
		return header{}, err
	}
	raw, ok, err := l.engine.Get(dataKey(no, p.seq))
	if err != nil || !ok {
		return header{}, err
	}
	return parseHeader(raw)
}
