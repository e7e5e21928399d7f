// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package gateway

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/klog/v2"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/platform-ai/platform/pkg/apis/core/v1alpha1"
	"github.com/platform-ai/platform/pkg/metric"
)

// Values of the labels result and kind.
const (
	resultCreated      = "created"
	resultDelayed      = "delayed"
	resultRefused      = "refused"
	resultExpired      = "expired"
	resultDeadLettered = "deadLettered"
	resultDecided      = "decided"

	kindEvent    = "event"
	kindDelivery = "delivery"
)

// resultOf returns the state of a delivery as a value of the label result.
func resultOf(s v1alpha1.GatewayDeliveryState) string {
	return strings.ToLower(string(s[:1])) + string(s[1:])
}

// metrics count what becomes of events and deliveries.
type metrics struct {
	dispatches, deliveries, deadLetters            *prometheus.CounterVec
	taskDuration, dispatchLatency, deliveryLatency prometheus.Histogram
}

func (m *metrics) dispatched(result string) { m.dispatches.WithLabelValues(result).Inc() }

// newMetrics registers the metrics until ctx ends.
func newMetrics(ctx context.Context, to prometheus.Registerer, records client.Reader, c clock.PassiveClock) (*metrics, error) {
	const namespace, subsystem = "platform", "gateway"
	counter := func(name, help, label string) *prometheus.CounterVec {
		return prometheus.NewCounterVec(prometheus.CounterOpts{Namespace: namespace, Subsystem: subsystem, Name: name, Help: help}, []string{label})
	}
	histogram := func(name, help string, first float64) prometheus.Histogram {
		return prometheus.NewHistogram(prometheus.HistogramOpts{
			Namespace: namespace, Subsystem: subsystem, Name: name, Help: help, Buckets: prometheus.ExponentialBuckets(first, 4, 10),
		})
	}
	m := &metrics{
		dispatches:      counter("dispatch_total", "Tries to make the task of an event of a gateway, by result.", "result"),
		deliveries:      counter("delivery_total", "Tries to send a delivery of a gateway, by the state of the delivery afterwards.", "result"),
		deadLetters:     counter("dead_letters_total", "Events and deliveries of gateways that the controller gave up, by kind.", "kind"),
		taskDuration:    histogram("task_duration_seconds", "Time from the creation of a task that answers an event of a gateway to its end.", 0.1),
		dispatchLatency: histogram("dispatch_latency_seconds", "Time from the acceptance of an event of a gateway to the creation of its task.", 0.005),
		deliveryLatency: histogram("delivery_latency_seconds", "Time from the end of a task that answers an event of a gateway to the delivery of the answer.", 0.005),
	}
	if to == nil {
		return m, nil
	}
	all := metric.Group{m.dispatches, m.deliveries, m.deadLetters, m.taskDuration, m.dispatchLatency, m.deliveryLatency, newQueues(ctx, records, c)}
	if err := to.Register(all); err != nil {
		return nil, fmt.Errorf("metrics of gateways: %w", err)
	}
	context.AfterFunc(ctx, func() { to.Unregister(all) })
	return m, nil
}

// queues shows the records in the controller's cache.
type queues struct {
	ctx        context.Context //nolint:containedctx // of the controller
	records    client.Reader
	clock      clock.PassiveClock
	depth, age *prometheus.Desc
}

var _ prometheus.Collector = (*queues)(nil)

func newQueues(ctx context.Context, records client.Reader, c clock.PassiveClock) *queues {
	desc := func(name, help string) *prometheus.Desc {
		return prometheus.NewDesc("platform_gateway_queue_"+name, help, []string{"kind"}, nil)
	}
	return &queues{
		ctx: ctx, records: records, clock: c,
		depth: desc("depth", "Events of gateways without a task, and deliveries that are not delivered, by kind."),
		age:   desc("oldest_age_seconds", "Age of the oldest of them, by kind."),
	}
}

// Describe sends the descriptions of all metrics.
func (q *queues) Describe(ch chan<- *prometheus.Desc) {
	ch <- q.depth
	ch <- q.age
}

// Collect sends the current values.
func (q *queues) Collect(ch chan<- prometheus.Metric) {
	var events v1alpha1.GatewayEventList
	var deliveries v1alpha1.GatewayDeliveryList
	for _, list := range []client.ObjectList{&events, &deliveries} {
		if err := q.records.List(q.ctx, list, client.UnsafeDisableDeepCopy); err != nil {
			klog.FromContext(q.ctx).Info("Records of gateways cannot be counted", "cause", err.Error())
			return
		}
	}
	var waiting, unsent []time.Time
	for i := range events.Items {
		if e := &events.Items[i]; !eventEnded(e) && e.Status.State != v1alpha1.GatewayEventTaskCreated {
			waiting = append(waiting, e.Spec.CreatedAt.Time)
		}
	}
	for i := range deliveries.Items {
		if d := &deliveries.Items[i]; !deliveryEnded(d) {
			unsent = append(unsent, d.Spec.CreatedAt.Time)
		}
	}
	now := q.clock.Now()
	for kind, all := range map[string][]time.Time{kindEvent: waiting, kindDelivery: unsent} {
		age := time.Duration(0)
		for _, at := range all {
			age = max(age, now.Sub(at))
		}
		ch <- prometheus.MustNewConstMetric(q.depth, prometheus.GaugeValue, float64(len(all)), kind)
		ch <- prometheus.MustNewConstMetric(q.age, prometheus.GaugeValue, age.Seconds(), kind)
	}
}
