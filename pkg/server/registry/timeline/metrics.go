// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package timeline

import (
	"github.com/prometheus/client_golang/prometheus"

	"github.com/platform-ai/platform/pkg/metric"
)

// Reasons of a stream error: reading the log failed, or writing to the client
// did.
const (
	reasonList  = "list"
	reasonWrite = "write"
)

// metrics are the metrics of event pages and streams. Pages have the scopes
// task_api and session_api, streams the scopes task and session.
type metrics struct {
	metric.Group
	lists        *prometheus.CounterVec
	listDuration *prometheus.HistogramVec
	connections  *prometheus.GaugeVec
	reconnects   *prometheus.CounterVec
	errors       *prometheus.CounterVec
}

func newMetrics() *metrics {
	opts := func(name, help string) prometheus.Opts {
		return prometheus.Opts{Namespace: "platform", Name: "execution_event_" + name, Help: help}
	}
	m := &metrics{
		lists: prometheus.NewCounterVec(prometheus.CounterOpts(
			opts("list_requests_total", "Pages of execution events that were asked for.")), []string{"scope", "result"}),
		listDuration: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Namespace: "platform", Name: "execution_event_list_duration_seconds",
			Help:    "Time to read a page of execution events.",
			Buckets: prometheus.ExponentialBuckets(0.0001, 2.5, 12), // 0.1 ms to 2.4 s
		}, []string{"scope", "result"}),
		connections: prometheus.NewGaugeVec(prometheus.GaugeOpts(
			opts("stream_connections_current", "Open streams of execution events.")), []string{"scope"}),
		reconnects: prometheus.NewCounterVec(prometheus.CounterOpts(
			opts("stream_reconnects_total", "Streams that were resumed after an earlier position.")), []string{"scope"}),
		errors: prometheus.NewCounterVec(prometheus.CounterOpts(
			opts("stream_errors_total", "Streams that ended with an error.")), []string{"scope", "reason"}),
	}
	m.Group = metric.Group{m.lists, m.listDuration, m.connections, m.reconnects, m.errors}
	return m
}

// listed records a page.
func (m *metrics) listed(t *Timeline, err error, seconds float64) {
	scope, result := string(t.Type)+"_api", "success"
	if err != nil {
		result = "error"
	}
	m.lists.WithLabelValues(scope, result).Inc()
	m.listDuration.WithLabelValues(scope, result).Observe(seconds)
}

// opened records the start of a stream; calling closed records its end.
func (m *metrics) opened(t *Timeline, after int64) (closed func()) {
	scope := string(t.Type)
	if after > 0 {
		m.reconnects.WithLabelValues(scope).Inc()
	}
	open := m.connections.WithLabelValues(scope)
	open.Inc()
	return open.Dec
}

func (m *metrics) failed(t *Timeline, reason string) {
	m.errors.WithLabelValues(string(t.Type), reason).Inc()
}
