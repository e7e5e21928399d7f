// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package worker

import (
	"errors"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/platform-ai/platform/pkg/metric"
)

// metrics count how often workers were identified, by outcome, and how long that took.
type metrics struct {
	metric.Group
	proofs   *prometheus.CounterVec
	duration prometheus.Histogram
}

func newMetrics() *metrics {
	m := &metrics{
		proofs: prometheus.NewCounterVec(prometheus.CounterOpts{
			Namespace: "platform", Name: "worker_identity_proofs_total",
			Help: "Requests of workers by the outcome of their identity's proof: proved, refused, later (to be repeated), failed.",
		}, []string{"outcome"}),
		duration: prometheus.NewHistogram(prometheus.HistogramOpts{
			Namespace: "platform", Name: "worker_identity_proof_duration_seconds",
			Help:    "Time that the proof of a worker's identity added to a request.",
			Buckets: prometheus.ExponentialBuckets(0.00001, 4, 10), // 10 µs to 2.6 s
		}),
	}
	for _, outcome := range []string{"proved", "refused", "later", "failed"} {
		m.proofs.WithLabelValues(outcome) // an alert sees only how a series grows
	}
	m.Group = metric.Group{m.proofs, m.duration}
	return m
}

func (m *metrics) proved(err error, took time.Duration) {
	outcome := "proved"
	if r, ok := errors.AsType[*refusal](err); ok && r.later {
		outcome = "later"
	} else if ok {
		outcome = "refused"
	} else if err != nil {
		outcome = "failed"
	}
	m.proofs.WithLabelValues(outcome).Inc()
	m.duration.Observe(took.Seconds())
}
