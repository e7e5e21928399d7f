// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

// Package metric helps packages that define their own metrics.
package metric

import "github.com/prometheus/client_golang/prometheus"

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
