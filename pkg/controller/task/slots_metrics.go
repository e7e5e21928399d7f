// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package task

import (
	"context"
	"fmt"

	"github.com/prometheus/client_golang/prometheus"
)

// slotMetrics shows a ledger of slots. Only namespaces that hold slots, wait for them or have reserved ones have samples.
type slotMetrics struct {
	room                            *slots
	held, waiting, reserved, limits *prometheus.Desc
}

var _ prometheus.Collector = (*slotMetrics)(nil)

// showSlots registers the metrics of a ledger, until ctx ends: a process may run controllers again.
func showSlots(ctx context.Context, r prometheus.Registerer, room *slots) error {
	if r == nil {
		return nil
	}
	desc := func(name, help string, labels ...string) *prometheus.Desc {
		return prometheus.NewDesc("platform_task_slots_"+name, help, labels, nil)
	}
	m := &slotMetrics{
		room:     room,
		held:     desc("held", "Slots for runs that tasks of a namespace hold.", "namespace"),
		waiting:  desc("waiting", "Tasks of a namespace that wait for a slot.", "namespace"),
		reserved: desc("reserved", "Slots that only tasks of a namespace can have (--reserved-tasks).", "namespace"),
		limits:   desc("limit", "Slots of all namespaces together (--max-running-tasks); 0 is no limit."),
	}
	if err := r.Register(m); err != nil {
		return fmt.Errorf("metrics of slots: %w", err)
	}
	context.AfterFunc(ctx, func() { r.Unregister(m) })
	return nil
}

// Describe sends the descriptions of all metrics.
func (m *slotMetrics) Describe(ch chan<- *prometheus.Desc) {
	for _, d := range []*prometheus.Desc{m.held, m.waiting, m.reserved, m.limits} {
		ch <- d
	}
}

// Collect sends the current values.
func (m *slotMetrics) Collect(ch chan<- prometheus.Metric) {
	m.room.mu.Lock()
	all, held, reserved, waiting := m.room.all, m.room.used.All(), m.room.used.AllReserved(), map[string]int{}
	for namespace, lists := range m.room.waiting.lists {
		for _, list := range lists {
			waiting[namespace] += len(list)
		}
	}
	m.room.mu.Unlock()
	send := func(d *prometheus.Desc, n int, labels ...string) {
		ch <- prometheus.MustNewConstMetric(d, prometheus.GaugeValue, float64(n), labels...)
	}
	send(m.limits, all)
	for d, values := range map[*prometheus.Desc]map[string]int{m.held: held, m.waiting: waiting, m.reserved: reserved} {
		for namespace, n := range values {
			send(d, n, namespace)
		}
	}
}
