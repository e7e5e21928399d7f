// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

// Package metric helps packages that define their own metrics.
package metric

import (
	"errors"
	"fmt"

	"github.com/prometheus/client_golang/prometheus"
)

// Register registers c, and returns it, or the Collector of its type that is registered with the same metrics: that of an
// earlier server of this process. A Registerer that is nil registers nothing.
func Register[C prometheus.Collector](r prometheus.Registerer, c C) (C, error) {
	if r == nil {
		return c, nil
	}
	err := r.Register(c)
	if known, ok := errors.AsType[prometheus.AlreadyRegisteredError](err); ok {
		if earlier, ok := known.ExistingCollector.(C); ok {
			return earlier, nil
		}
	}
	if err != nil {
		return c, fmt.Errorf("register metrics: %w", err)
	}
	return c, nil
}

// Group is a set of metrics that are registered together, as one Collector.
type Group []prometheus.Collector

var _ prometheus.Collector = Group(nil)

// Describe sends what Collect may send.
func (g Group) Describe(ch chan<- *prometheus.Desc) {
	for _, c := range g {
		c.Describe(ch)
	}
}

// Collect sends the current values.
func (g Group) Collect(ch chan<- prometheus.Metric) {
	for _, c := range g {
		c.Collect(ch)
	}
}
