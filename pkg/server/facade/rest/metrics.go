// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package rest

import (
	"net/http"
	"slices"
	"strconv"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/platform-ai/platform/pkg/metric"
)

// metrics are the metrics of REST requests. The label endpoint is the pattern of a row, never a
// path.
type metrics struct {
	metric.Group
	requests *prometheus.CounterVec
	duration *prometheus.HistogramVec
}

func newMetrics() *metrics {
	m := &metrics{
		requests: prometheus.NewCounterVec(prometheus.CounterOpts{
			Namespace: "platform", Name: "api_requests_total", Help: "REST requests that were answered.",
		}, []string{"endpoint", "method", "status"}),
		duration: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Namespace: "platform", Name: "api_request_duration_seconds",
			Help:    "Time from a REST request to the end of its answer; streams count until they end.",
			Buckets: prometheus.ExponentialBuckets(0.001, 2.5, 14), // 1 ms to 149 s
		}, []string{"endpoint", "method"}),
	}
	m.Group = metric.Group{m.requests, m.duration}
	return m
}

func (m *metrics) done(endpoint, method string, status int, took time.Duration) {
	if endpoint == "" {
		endpoint = "unknown"
	}
	known := []string{
		http.MethodGet, http.MethodPost, http.MethodPut, http.MethodDelete, http.MethodPatch, http.MethodOptions, http.MethodHead,
	}
	if !slices.Contains(known, method) { // clients may invent methods, and each would create a series
		method = "other"
	}
	m.requests.WithLabelValues(endpoint, method, strconv.Itoa(status)).Inc()
	m.duration.WithLabelValues(endpoint, method).Observe(took.Seconds())
}
