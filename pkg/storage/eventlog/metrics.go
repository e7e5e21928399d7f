// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package eventlog

import (
	"github.com/prometheus/client_golang/prometheus"

	"github.com/platform-ai/platform/pkg/apis/core/v1alpha1"
	"github.com/platform-ai/platform/pkg/event"
	"github.com/platform-ai/platform/pkg/metric"
)

// metrics are the metrics of appends. Labels are types, never names of tasks, sessions or tools.
type metrics struct {
	metric.Group
	appends     *prometheus.CounterVec
	failures    *prometheus.CounterVec
	duration    *prometheus.HistogramVec
	redactions  *prometheus.CounterVec
	truncations *prometheus.CounterVec
	derived     *prometheus.HistogramVec
	broken      *prometheus.CounterVec
}

func newMetrics() *metrics {
	labels := []string{"stream_type", "event_type"}
	counter := func(name, help string) *prometheus.CounterVec {
		return prometheus.NewCounterVec(prometheus.CounterOpts{Namespace: "platform", Name: name, Help: help}, labels)
	}
	m := &metrics{
		appends:  counter("execution_events_appended_total", "Execution events that were stored."),
		failures: counter("execution_event_append_failures_total", "Execution events that were not stored, refused or failed."),
		duration: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Namespace: "platform", Name: "execution_event_append_duration_seconds",
			Help:    "Time from the append of an event to its being durable and visible, or refused.",
			Buckets: prometheus.ExponentialBuckets(0.0001, 2.5, 12), // 0.1 ms to 2.4 s
		}, []string{"stream_type", "event_type", "result"}),
		redactions:  counter("execution_event_redactions_total", "Execution events in which the store removed a secret."),
		truncations: counter("execution_event_truncations_total", "Execution events in which the store cut a payload."),
		derived: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Namespace: "platform", Name: "execution_event_derived_latency_seconds",
			Help:    "Times that follow from execution events: queue, run, model_request, tool_call.",
			Buckets: prometheus.ExponentialBuckets(0.01, 3, 12), // 10 ms to 30 min
		}, []string{"measurement", "result"}),
		broken: prometheus.NewCounterVec(prometheus.CounterOpts{
			Namespace: "platform", Name: "execution_event_derived_failures_total",
			Help: "Failures that execution events report, by kind.",
		}, []string{"category", "event_type"}),
	}
	m.Group = metric.Group{m.appends, m.failures, m.duration, m.redactions, m.truncations, m.derived, m.broken}
	return m
}

// appended counts an append of events and its outcome. Events that were already stored are not counted
// again.
func (m *metrics) appended(events []*v1alpha1.ExecutionEvent, a *appendTxn, err error, seconds float64) {
	result := "success"
	if err != nil {
		result = "error"
	}
	for i, e := range events {
		t := typeLabel(e.Type)
		switch {
		case err != nil:
			m.failures.WithLabelValues(string(v1alpha1.StreamTask), t).Inc()
		case a.events[i].fresh:
			m.appends.WithLabelValues(string(v1alpha1.StreamTask), t).Inc()
		}
		m.duration.WithLabelValues(string(v1alpha1.StreamTask), t, result).Observe(seconds)
	}
}

// Refused counts events that were refused before they reached Append.
func (l *Log) Refused(events ...*v1alpha1.ExecutionEvent) {
	for _, e := range events {
		l.metrics.failures.WithLabelValues(string(v1alpha1.StreamTask), typeLabel(e.Type)).Inc()
	}
}

// sanitized notes what was done to an event.
func (m *metrics) sanitized(t v1alpha1.EventType, r event.Report) {
	if r.Redacted {
		m.redactions.WithLabelValues(string(v1alpha1.StreamTask), typeLabel(t)).Inc()
	}
	if r.Truncated {
		m.truncations.WithLabelValues(string(v1alpha1.StreamTask), typeLabel(t)).Inc()
	}
}

// typeLabel returns the label for t, so that producers cannot create new label values.
func typeLabel(t v1alpha1.EventType) string {
	if event.Known(t) {
		return string(t)
	}
	return "unknown"
}
