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
	seen map[seriesName]*series
}

// seriesName is what a request is counted by.
type seriesName struct{ namespace, provider, model string }

// series are the counters of one name. Those that nothing was counted in do not exist.
type series struct {
	provider, model      string // the labels
	requests, unreported prometheus.Counter
	tokens               [len(directions)]prometheus.Counter
}

// directions are those of tokens.
var directions = [...]string{"input", "output", "cache_read", "cache_write"}

var _ models.Meter = (*PrometheusMeter)(nil)

// NewPrometheusMeter makes a meter whose counters are zero.
func NewPrometheusMeter() *PrometheusMeter {
	m := &PrometheusMeter{
		seen: map[seriesName]*series{},
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
	m.mu.Lock()
	defer m.mu.Unlock()
	s := m.of(seriesName{a.Namespace, a.Provider, a.Model})
	if s.requests == nil {
		s.requests = m.requests.WithLabelValues(s.provider, s.model)
		m.unreported.WithLabelValues(s.provider, s.model) // an alert sees only how a series grows
	}
	s.requests.Inc()
	return counted{m, s}, nil
}

// of returns the counters of a name. The caller holds mu.
func (m *PrometheusMeter) of(name seriesName) *series {
	if s := m.seen[name]; s != nil {
		return s
	}
	s := &series{provider: name.namespace + "/" + name.provider, model: name.model}
	if len(m.seen) >= maxSeries {
		if name = (seriesName{model: otherModels}); m.seen[name] != nil {
			return m.seen[name]
		}
		s.provider, s.model = otherModels, otherModels
	}
	m.seen[name] = s
	return s
}

// counted is a request of a PrometheusMeter.
type counted struct {
	*PrometheusMeter

	in *series
}

// End counts the tokens.
func (c counted) End(e models.Ended) {
	u, s := e.Usage, c.in
	c.mu.Lock()
	defer c.mu.Unlock()
	if !u.Known() && !e.Refused {
		if s.unreported == nil {
			s.unreported = c.unreported.WithLabelValues(s.provider, s.model)
		}
		s.unreported.Inc()
	}
	for i, n := range [...]*int64{u.InputTokens, u.OutputTokens, u.CachedInputTokens, u.CacheWriteInputTokens} {
		if n == nil {
			continue
		}
		if s.tokens[i] == nil {
			s.tokens[i] = c.tokens.WithLabelValues(s.provider, s.model, directions[i])
		}
		s.tokens[i].Add(float64(*n))
	}
}
