// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package object

import (
	"github.com/prometheus/client_golang/prometheus"

	"github.com/platform-ai/platform/pkg/metric"
)

// metrics is the DB's prometheus.Collector.
type metrics struct {
	db *DB

	writes            *prometheus.CounterVec // resource, operation
	conflicts         *prometheus.CounterVec // resource
	reads             *prometheus.CounterVec // resource, operation
	watches           *prometheus.GaugeVec   // resource
	watchesCut        *prometheus.CounterVec // resource
	replayed          prometheus.Counter
	compacted         prometheus.Counter
	objects, bytes    *prometheus.Desc // resource
	ringEvents, ringB *prometheus.Desc // resource
	compactedRevision *prometheus.Desc
	cachedBytes       *prometheus.Desc
}

var _ prometheus.Collector = (*metrics)(nil)

const namespace = "platform_object"

func newMetrics(db *DB) *metrics {
	vec := func(name, help string, labels ...string) *prometheus.CounterVec {
		return prometheus.NewCounterVec(prometheus.CounterOpts{Namespace: namespace, Name: name, Help: help}, labels)
	}
	desc := func(name, help string, labels ...string) *prometheus.Desc {
		return prometheus.NewDesc(namespace+"_"+name, help, labels, nil)
	}
	return &metrics{
		db:        db,
		writes:    vec("writes_total", "Committed changes of objects.", "resource", "operation"),
		conflicts: vec("write_conflicts_total", "Writes that lost to a concurrent write.", "resource"),
		reads:     vec("reads_total", "Gets and lists.", "resource", "operation"),
		watches: prometheus.NewGaugeVec(prometheus.GaugeOpts{
			Namespace: namespace, Name: "watches", Help: "Open watches.",
		}, []string{"resource"}),
		watchesCut: vec("watches_cut_total", "Watches ended because they asked for, or fell behind, compacted history.", "resource"),
		replayed: prometheus.NewCounter(prometheus.CounterOpts{
			Namespace: namespace, Name: "watch_replayed_events_total", Help: "Events that watches read from disk because memory no longer had them.",
		}),
		compacted: prometheus.NewCounter(prometheus.CounterOpts{
			Namespace: namespace, Name: "compacted_changes_total", Help: "Changes dropped from history.",
		}),
		objects:           desc("objects", "Live objects.", "resource"),
		bytes:             desc("bytes", "Stored bytes of live objects.", "resource"),
		ringEvents:        desc("ring_events", "Recent events in memory.", "resource"),
		ringB:             desc("ring_bytes", "Estimated memory of recent events.", "resource"),
		cachedBytes:       desc("cached_bytes", "Stored bytes of the objects kept decoded."),
		compactedRevision: desc("compacted_revision", "Revision up to which history is gone."),
	}
}

func (m *metrics) own() metric.Group {
	return metric.Group{m.writes, m.conflicts, m.reads, m.watches, m.watchesCut, m.replayed, m.compacted}
}

// Describe sends what Collect may send.
func (m *metrics) Describe(ch chan<- *prometheus.Desc) {
	m.own().Describe(ch)
	for _, d := range []*prometheus.Desc{m.objects, m.bytes, m.ringEvents, m.ringB, m.compactedRevision, m.cachedBytes} {
		ch <- d
	}
}

// Collect sends the current values.
func (m *metrics) Collect(ch chan<- prometheus.Metric) {
	m.own().Collect(ch)
	gauge := func(d *prometheus.Desc, v float64, labels ...string) {
		ch <- prometheus.MustNewConstMetric(d, prometheus.GaugeValue, v, labels...)
	}
	gauge(m.compactedRevision, float64(m.db.CompactRevision()))
	gauge(m.cachedBytes, float64(m.db.cached.Load()))
	for _, t := range m.db.allTopics() {
		objects, bytes := t.stats()
		gauge(m.objects, float64(objects), t.resource)
		gauge(m.bytes, float64(bytes), t.resource)
		t.mu.RLock()
		events, ringBytes := len(t.ring.events), t.ring.bytes
		t.mu.RUnlock()
		gauge(m.ringEvents, float64(events), t.resource)
		gauge(m.ringB, float64(ringBytes), t.resource)
	}
}

// topicMetrics are the metrics of one resource, looked up once.
type topicMetrics struct {
	create, update, remove, conflicts, gets, lists, cut prometheus.Counter
	watches                                             prometheus.Gauge
}

func (m *metrics) of(resource string) topicMetrics {
	return topicMetrics{
		create:    m.writes.WithLabelValues(resource, "create"),
		update:    m.writes.WithLabelValues(resource, "update"),
		remove:    m.writes.WithLabelValues(resource, "delete"),
		conflicts: m.conflicts.WithLabelValues(resource),
		gets:      m.reads.WithLabelValues(resource, "get"),
		lists:     m.reads.WithLabelValues(resource, "list"),
		cut:       m.watchesCut.WithLabelValues(resource),
		watches:   m.watches.WithLabelValues(resource),
	}
}

func (m *topicMetrics) wrote(op byte) {
	switch op {
	case opCreate:
		m.create.Inc()
	case opUpdate:
		m.update.Inc()
	case opDelete:
		m.remove.Inc()
	}
}
