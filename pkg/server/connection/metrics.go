// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package connection

import (
	"github.com/prometheus/client_golang/prometheus"

	"github.com/platform-ai/platform/pkg/metric"
)

// What becomes of consents, beside the reasons of a callback.
const (
	begun        = "begun"
	parkedTokens = "parked"
	committed    = "committed"
	released     = "released"
)

// What becomes of refreshes.
const (
	refreshed = "refreshed"
	revoked   = "revoked"
	expired   = "expired"
	failed    = "failed"
	unknown   = "unknown"
	discarded = "discarded"
)

// metrics count. They name no person, connection or provider.
type metrics struct {
	consents, revocations, refreshes *prometheus.CounterVec
}

func newMetrics(r prometheus.Registerer) (*metrics, error) {
	m := &metrics{}
	var err error
	if m.consents, err = metric.Register(r, prometheus.NewCounterVec(prometheus.CounterOpts{
		Namespace: "platform_connections", Name: "consents_total", Help: "Steps of consents, by outcome: begun, parked, committed, released, or the reason of a callback that failed.",
	}, []string{"outcome"})); err != nil {
		return nil, err
	}
	if m.revocations, err = metric.Register(r, prometheus.NewCounterVec(prometheus.CounterOpts{
		Namespace: "platform_connections", Name: "revocations_total", Help: "Grants that were given back when people disconnected, by outcome: revoked, failed.",
	}, []string{"outcome"})); err != nil {
		return nil, err
	}
	m.refreshes, err = metric.Register(r, prometheus.NewCounterVec(prometheus.CounterOpts{
		Namespace: "platform_connections", Name: "refreshes_total",
		Help: "Refreshes of access tokens, by outcome: refreshed; revoked (the provider does not honour the grant any longer); expired (there was nothing to refresh with); failed; unknown (sent, and not answered); discarded (the person disconnected meanwhile).",
	}, []string{"outcome"}))
	return m, err
}
