// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package compat

import (
	"context"
	"sync"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/platform-ai/platform/pkg/metric"
	"github.com/platform-ai/platform/pkg/server/models"
)

// maxSeries bounds the pairs of Provider and model that have counters of their own, because clients choose the names of
// models. All others are counted together.
const maxSeries = 1000

// otherModels is the model under which requests are counted after maxSeries pairs.
const otherModels = "other"

// PrometheusMeter counts requests and tokens. It is a collector of its counters.
type PrometheusMeter struct {
	metric.Group

	requests, unreported *prometheus.CounterVec
	tokens               *prometheus.CounterVec

	mu   sync.Mutex
	seen map[[2]string]bool
}

var _ models.Meter = (*PrometheusMeter)(nil)

// NewPrometheusMeter makes a meter whose counters are zero.
func NewPrometheusMeter() *PrometheusMeter {
	m := &PrometheusMeter{
		seen: map[[2]string]bool{},
		requests: prometheus.NewCounterVec(prometheus.CounterOpts{
			Namespace: "platform_compat", Name: "model_requests_total",
			Help: "Requests of clients of the vendors' APIs to models, by Provider (namespace/name) and model.",
		}, []string{"provider", "model"}),
		unreported: prometheus.NewCounterVec(prometheus.CounterOpts{
			Namespace: "platform_compat", Name: "model_requests_unreported_total",
			Help: "Requests that ended without a report of the tokens they used.",
		}, []string{"provider", "model"}),
		tokens: prometheus.NewCounterVec(prometheus.CounterOpts{
			Namespace: "platform_compat", Name: "model_tokens_total",
			Help: "Tokens that vendors reported, by direction: input, output, cache_read or cache_write. The latter two are parts of input.",
		}, []string{"provider", "model", "direction"}),
	}
	m.Group = metric.Group{m.requests, m.unreported, m.tokens}
	return m
}

// Start counts the request.
func (m *PrometheusMeter) Start(_ context.Context, a models.Asked) (models.Measurement, error) {
	provider, model := a.Namespace+"/"+a.Provider, a.Model
	m.mu.Lock()
	if id := [2]string{provider, model}; !m.seen[id] {
		if len(m.seen) < maxSeries {
			m.seen[id] = true
		} else {
			provider, model = otherModels, otherModels
		}
	}
	m.mu.Unlock()
	m.requests.WithLabelValues(provider, model).Inc()
	return counted{m, provider, model}, nil
}

// counted is a request of a PrometheusMeter.
type counted struct {
	*PrometheusMeter

	provider, model string
}

// End counts the tokens.
func (c counted) End(e models.Ended) {
	u := e.Usage
	if !u.Known() {
		c.unreported.WithLabelValues(c.provider, c.model).Inc()
	}
	for direction, n := range map[string]*int64{
		"input": u.InputTokens, "output": u.OutputTokens, "cache_read": u.CachedInputTokens, "cache_write": u.CacheWriteInputTokens,
	} {
		if n != nil {
			c.tokens.WithLabelValues(c.provider, c.model, direction).Add(float64(*n))
		}
	}
}
