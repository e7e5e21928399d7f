// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"os"
	"path/filepath"
	"slices"
	"testing"
)

const declarations = `package p

import "github.com/prometheus/client_golang/prometheus"

const namespace = "ns"

func make_() {
	labels := []string{"a", "b"}
	vec := func(name, help string, more ...string) *prometheus.CounterVec {
		return prometheus.NewCounterVec(prometheus.CounterOpts{Namespace: namespace, Name: name, Help: help}, more)
	}
	opts := func(name string) prometheus.Opts { return prometheus.Opts{Namespace: namespace, Subsystem: "sub", Name: name} }
	_ = vec("one_total", "One.", "x", "y")
	_ = vec("two_total", "Two.")
	_ = prometheus.NewGaugeVec(prometheus.GaugeOpts(opts("three")), labels)
	_ = prometheus.NewDesc(namespace+"_four", "Four.", nil, nil)
	_ = []any{prometheus.NewGaugeFunc(prometheus.GaugeOpts{Name: "five", Help: "F" + "ive."}, nil)}
}
`

func TestMetricsOf(t *testing.T) {
	found := parseMetrics(t, declarations)
	want := []metricDecl{
		{name: "ns_one_total", typ: "counter", help: "One.", labels: []string{"x", "y"}},
		{name: "ns_two_total", typ: "counter", help: "Two."},
		{name: "ns_sub_three", typ: "gauge", labels: []string{"a", "b"}},
		{name: "ns_four", typ: "gauge", help: "Four."},
		{name: "five", typ: "gauge", help: "Five."},
	}
	if !slices.EqualFunc(found, want, func(a, b metricDecl) bool {
		return a.name == b.name && a.typ == b.typ && a.help == b.help && slices.Equal(a.labels, b.labels)
	}) {
		t.Errorf("found %+v\nwant  %+v", found, want)
	}
}

// TestMetricsOfUnknown checks that a declaration that cannot be read is an error and not left out
// silently.
func TestMetricsOfUnknown(t *testing.T) {
	const head = "package p\n\nimport \"github.com/prometheus/client_golang/prometheus\"\n\n"
	for name, body := range map[string]string{
		"name of an argument":   "func f(name string) { prometheus.NewCounter(prometheus.CounterOpts{Name: name}) }\n",
		"options of a variable": "func f(o prometheus.CounterOpts) { prometheus.NewCounter(o) }\n",
		"labels of an argument": "func f(l []string) { prometheus.NewCounterVec(prometheus.CounterOpts{Name: \"n\"}, l) }\n",
	} {
		if _, err := metricsOf(write(t, head+body)); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
}

func parseMetrics(t *testing.T, source string) []metricDecl {
	t.Helper()
	found, err := metricsOf(write(t, source))
	if err != nil {
		t.Fatal(err)
	}
	return found
}

func write(t *testing.T, source string) string {
	t.Helper()
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "p.go"), []byte(source), 0o600); err != nil {
		t.Fatal(err)
	}
	return dir
}
