// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package monitor

import (
	"context"
	"fmt"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/platform-ai/platform/pkg/metric"
)

// metrics count what monitors do.
type metrics struct {
	commands, works, mutations, blocks *prometheus.CounterVec
}

// newMetrics registers the metrics until ctx ends.
func newMetrics(ctx context.Context, to prometheus.Registerer) (*metrics, error) {
	counter := func(name, help string, labels ...string) *prometheus.CounterVec {
		return prometheus.NewCounterVec(prometheus.CounterOpts{Namespace: "platform", Subsystem: "repository_monitor", Name: name, Help: help}, labels)
	}
	m := &metrics{
		commands:  counter("commands_total", "Commands to repository monitors, by what was asked for and what became of it.", "intent", "status"),
		works:     counter("work_actions_total", "Work of repository monitors, by what was to be done and how it ended.", "desired_action", "status"),
		mutations: counter("github_mutations_total", "What repository monitors wrote on code hosts, by operation and outcome.", "operation", "status"),
		blocks:    counter("blocks_total", "What kept pull requests and issues from going on, by reason.", "reason"),
	}
	if to == nil {
		return m, nil
	}
	all := metric.Group{m.commands, m.works, m.mutations, m.blocks}
	if err := to.Register(all); err != nil {
		return nil, fmt.Errorf("metrics of monitors: %w", err)
	}
	context.AfterFunc(ctx, func() { to.Unregister(all) })
	return m, nil
}
