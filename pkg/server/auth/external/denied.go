// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package external

import (
	"context"
	"errors"
	"strings"

	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/apiserver/pkg/authorization/authorizer"

	"github.com/platform-ai/platform/pkg/metric"
)

// metrics count what is decided about transaction tokens.
type metrics struct {
	metric.Group
	authenticated *prometheus.CounterVec
	authorized    *prometheus.CounterVec
	denied        *prometheus.CounterVec
}

func newMetrics() *metrics {
	counter := func(name, help string, labels ...string) *prometheus.CounterVec {
		return prometheus.NewCounterVec(prometheus.CounterOpts{Namespace: "platform", Name: name, Help: help}, labels)
	}
	m := &metrics{
		authenticated: counter("context_token_auth_total",
			"Transaction tokens that were verified, by profile and result: success or failure.", "profile", "result"),
		authorized: counter("context_token_authorization_total",
			"Decisions about requests with a transaction token, by what the request needs (families of scopes, other), by result (allowed, audited, denied), "+
				"and by what the token lacks (scope, constraint, namespace, never for what no token may do).", "action", "result", "reason"),
		denied: counter("context_token_denied_total",
			"Requests that the scopes or constraints of a transaction token do not cover, by the mode: audit (only counted) or enforce (refused).", "mode"),
	}
	for _, mode := range []string{ModeAudit, ModeEnforce} {
		m.denied.WithLabelValues(mode)
	}
	for _, result := range []string{resultSuccess, resultFailure} {
		m.authenticated.WithLabelValues(ProfileTransactionToken, result)
	}
	m.Group = metric.Group{m.authenticated, m.authorized, m.denied}
	return m
}

const resultSuccess, resultFailure = "success", "failure"

// lack is what a transaction does not cover: the class for metrics, and the words for the caller. The zero value lacks nothing.
type lack struct{ class, words string }

// Classes of what a token lacks.
const (
	lacksScope      = "scope"
	lacksConstraint = "constraint"
	lacksNamespace  = "namespace"
	lacksNever      = "never"
)

// actionOf names what a request needs, in as many words as there are families of scopes.
func (s *Service) actionOf(a authorizer.Attributes) string {
	if list, ok := s.kinds.Needed(a); ok {
		return strings.Join(list, ",")
	}
	return "other"
}

// Actions that are not requests.
const actionTask, actionTool = "task content", "tool call"

// decide counts the decision about an action of a transaction, and returns why it is refused; empty if it is not.
func (s *Service) decide(ctx context.Context, action string, l lack) string {
	switch {
	case l.words == "":
		s.metrics.authorized.WithLabelValues(action, "allowed", "").Inc()
		return ""
	case l.class == lacksNever || l.class == lacksNamespace: // in every mode
		s.metrics.authorized.WithLabelValues(action, "denied", l.class).Inc()
		return l.words
	}
	s.metrics.denied.WithLabelValues(s.mode).Inc()
	if s.mode == ModeAudit {
		s.metrics.authorized.WithLabelValues(action, "audited", l.class).Inc()
		s.sparse.Error(ctx, errors.New(l.words), "A transaction token does not cover a request; --context-token-authz-mode=enforce would refuse it")
		return ""
	}
	s.metrics.authorized.WithLabelValues(action, "denied", l.class).Inc()
	return l.words
}
