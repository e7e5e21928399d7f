// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package router

import (
	"strconv"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/platform-ai/platform/pkg/metric"
)

// metrics are the metrics of the router. The label endpoint is an entry of the table, never a path. No label is a
// namespace or a caller.
type metrics struct {
	metric.Group
	requests *prometheus.CounterVec
	broken   *prometheus.CounterVec
	duration *prometheus.HistogramVec
	inFlight prometheus.Gauge
	reviews  *prometheus.CounterVec
	routes   prometheus.Gauge
	current  prometheus.Gauge
}

func newMetrics() *metrics {
	const namespace, subsystem = "platform", "router"
	m := &metrics{
		requests: prometheus.NewCounterVec(prometheus.CounterOpts{
			Namespace: namespace, Subsystem: subsystem, Name: "requests_total",
			Help: "Requests that ended, by status of the answer; 499 means that the client disconnected before it.",
		}, []string{"endpoint", "status"}),
		broken: prometheus.NewCounterVec(prometheus.CounterOpts{
			Namespace: namespace, Subsystem: subsystem, Name: "broken_answers_total",
			Help: "Answers that broke off: the installation's connection, a client that disconnected, or one that did not read.",
		}, []string{"endpoint"}),
		duration: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Namespace: namespace, Subsystem: subsystem, Name: "request_duration_seconds",
			Help:    "Time from a request to the end of its answer; streams count until they end.",
			Buckets: prometheus.ExponentialBuckets(0.001, 4, 12), // 1 ms to 70 min: a chat may take 30
		}, []string{"endpoint"}),
		inFlight: prometheus.NewGauge(prometheus.GaugeOpts{
			Namespace: namespace, Subsystem: subsystem, Name: "requests_in_flight", Help: "Requests whose answer has not ended.",
		}),
		reviews: prometheus.NewCounterVec(prometheus.CounterOpts{
			Namespace: namespace, Subsystem: subsystem, Name: "token_reviews_total",
			Help: "Tokens that the API server was asked about: accepted, refused, or error where it did not say.",
		}, []string{"result"}),
		routes: prometheus.NewGauge(prometheus.GaugeOpts{
			Namespace: namespace, Subsystem: subsystem, Name: "routes", Help: "Namespaces that are enabled.",
		}),
		current: prometheus.NewGauge(prometheus.GaugeOpts{
			Namespace: namespace, Subsystem: subsystem, Name: "routes_current",
			Help: "1 while the routes in force are those of the routes file; 0 while that cannot be used.",
		}),
	}
	m.Group = metric.Group{m.requests, m.broken, m.duration, m.inFlight, m.reviews, m.routes, m.current}
	return m
}

func (m *metrics) done(endpoint string, status int, broken bool, took time.Duration) {
	m.requests.WithLabelValues(endpoint, strconv.Itoa(status)).Inc()
	m.duration.WithLabelValues(endpoint).Observe(took.Seconds())
	if broken {
		m.broken.WithLabelValues(endpoint).Inc()
	}
}
