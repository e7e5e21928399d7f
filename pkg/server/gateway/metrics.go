// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package gateway

import (
	"fmt"
	"net/http"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/platform-ai/platform/pkg/gateway/protocol"
	"github.com/platform-ai/platform/pkg/metric"
)

// Results of events that are not answered with 202; the others are the values of protocol.Reply.Status.
const (
	resultUnauthorized = "unauthorized"
	resultLimited      = "limited"
	resultRefused      = "refused"
	resultConflict     = "conflict"
	resultInvalid      = "invalid"
	resultUnavailable  = "unavailable"
)

// metrics count what happens at the door.
type metrics struct {
	ingress *prometheus.CounterVec
	latency prometheus.Histogram
}

func newMetrics(r prometheus.Registerer) (*metrics, error) {
	m := &metrics{
		ingress: prometheus.NewCounterVec(prometheus.CounterOpts{
			Namespace: "platform_gateway", Name: "ingress_total", Help: "Events that adapters of gateways delivered, by what became of them.",
		}, []string{"result"}),
		latency: prometheus.NewHistogram(prometheus.HistogramOpts{
			Namespace: "platform_gateway", Name: "intake_duration_seconds", Help: "How long it took to store an event of a gateway.", Buckets: prometheus.ExponentialBuckets(0.0005, 2, 14),
		}),
	}
	var err error
	if m.ingress, err = metric.Register(r, m.ingress); err != nil {
		return nil, fmt.Errorf("metrics of gateways: %w", err)
	}
	if m.latency, err = metric.Register(r, m.latency); err != nil {
		return nil, fmt.Errorf("metrics of gateways: %w", err)
	}
	for _, result := range []string{
		protocol.ReplyAccepted, protocol.ReplyDuplicate, protocol.ReplyRejected, protocol.ReplyDeadLettered,
		resultUnauthorized, resultLimited, resultRefused, resultConflict, resultInvalid, resultUnavailable,
	} {
		m.ingress.WithLabelValues(result) // an alert sees only how a series grows
	}
	return m, nil
}

func (m *metrics) intake(took time.Duration) { m.latency.Observe(took.Seconds()) }

// resultOf returns the result of an event that was answered with an error.
func resultOf(code int) string {
	switch code {
	case http.StatusConflict:
		return resultConflict
	case http.StatusTooManyRequests:
		return resultLimited
	case http.StatusServiceUnavailable:
		return resultUnavailable
	}
	return resultInvalid
}
