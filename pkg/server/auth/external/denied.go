// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package external

import (
	"context"
	"errors"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/platform-ai/platform/pkg/metric"
)

// register registers the metric of requests that scopes do not cover.
func (s *Service) register(metrics prometheus.Registerer) error {
	s.denied = prometheus.NewCounterVec(prometheus.CounterOpts{
		Namespace: "platform", Name: "context_token_denied_total",
		Help: "Requests that the scopes or constraints of a transaction token do not cover, by the mode: audit (only counted) or enforce (refused).",
	}, []string{"mode"})
	for _, mode := range []string{ModeAudit, ModeEnforce} {
		s.denied.WithLabelValues(mode)
	}
	var err error
	s.denied, err = metric.Register(metrics, s.denied)
	return err
}

// deny counts a request that a transaction does not cover, and returns the reason if it is to be refused.
func (s *Service) deny(ctx context.Context, reason string) string {
	if reason == "" {
		return ""
	}
	s.denied.WithLabelValues(s.mode).Inc()
	if s.mode == ModeAudit {
		s.sparse.Error(ctx, errors.New(reason), "A transaction token does not cover a request; --context-token-authz-mode=enforce would refuse it")
		return ""
	}
	return reason
}
