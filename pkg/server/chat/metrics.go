// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package chat

import (
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/platform-ai/platform/pkg/apis/core/v1alpha1"
	"github.com/platform-ai/platform/pkg/metric"
	"github.com/platform-ai/platform/pkg/tool"
)

// metrics count turns and calls. No label names a session, a task or a caller.
type metrics struct {
	metric.Group
	running  prometheus.Gauge
	slots    *prometheus.GaugeVec
	turns    *prometheus.CounterVec
	duration prometheus.Histogram
	calls    *prometheus.CounterVec
	tasks    prometheus.Counter
	aside    prometheus.Counter

	mu   sync.Mutex
	held map[string]int // turns by namespace
}

func newMetrics() *metrics {
	m := &metrics{
		held: map[string]int{},
		running: prometheus.NewGauge(prometheus.GaugeOpts{
			Name: "platform_chat_turns_running", Help: "Turns of chats that run now. Each takes one slot of --chat-max-concurrent.",
		}),
		slots: prometheus.NewGaugeVec(prometheus.GaugeOpts{
			Name: "platform_chat_slots_held", Help: "Turns of chats that run now, by namespace. Namespaces without one have no sample.",
		}, []string{"namespace"}),
		turns: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "platform_chat_turns_total", Help: "Turns of chats that have ended, by result: an outcome, the code of an error, or busy if no slot was free.",
		}, []string{"result"}),
		duration: prometheus.NewHistogram(prometheus.HistogramOpts{
			Name: "platform_chat_turn_duration_seconds", Help: "How long turns of chats took.", Buckets: prometheus.ExponentialBuckets(0.1, 3, 10),
		}),
		calls: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "platform_chat_tool_calls_total", Help: "Calls of the tools of chats, by tool and result: ok, or the type of the error.",
		}, []string{"tool", "result"}),
		tasks: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "platform_chat_tasks_created_total", Help: "Tasks that chats created.",
		}),
		aside: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "platform_chat_turns_set_aside_total", Help: "Turns that an earlier process left and that this one could not read. Their sessions say so and go on without them.",
		}),
	}
	m.Group = metric.Group{m.running, m.slots, m.turns, m.duration, m.calls, m.tasks, m.aside}
	return m
}

// took and gave count a turn that takes and gives back a slot.
func (m *metrics) took(namespace string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.running.Inc()
	m.held[namespace]++
	m.slots.WithLabelValues(namespace).Set(float64(m.held[namespace]))
}

func (m *metrics) gave(namespace string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.running.Dec()
	if m.held[namespace]--; m.held[namespace] > 0 {
		m.slots.WithLabelValues(namespace).Set(float64(m.held[namespace]))
		return
	}
	delete(m.held, namespace)
	m.slots.DeleteLabelValues(namespace)
}

func (m *metrics) refused() { m.turns.WithLabelValues("busy").Inc() }

func (m *metrics) ended(status *v1alpha1.ChatStatus, failed *Failure, took time.Duration) {
	result := string(status.Outcome)
	if failed != nil {
		result = failed.Code
	}
	m.turns.WithLabelValues(result).Inc()
	m.duration.Observe(took.Seconds())
	m.tasks.Add(float64(status.Usage.TasksCreated))
}

// called counts a call. A name that no tool has is not a label, because a model may invent any.
func (m *metrics) called(c *tool.Catalogue, name string, r tool.Result) {
	if _, known := c.Definition(name); !known {
		name = "unknown"
	}
	result := "ok"
	if r.Failed() {
		result = string(r.ErrorType)
	}
	m.calls.WithLabelValues(name, result).Inc()
}
