// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package rest

import (
	"context"
	"fmt"
	"net/http"
	"time"

	"k8s.io/utils/clock"
)

// checkTimeout bounds one check of readiness.
const checkTimeout = 2 * time.Second

// Check returns nil, or an error that says what is wrong.
type Check func(ctx context.Context) error

// Health answers the probes of a listener that serves only REST paths. They need no credentials.
type Health struct {
	clock  clock.WithTicker
	checks map[string]Check
}

// NewHealth makes the probes. Each check may take 2 seconds.
func NewHealth(c clock.WithTicker, checks map[string]Check) *Health {
	return &Health{clock: c, checks: checks}
}

// health is the body of a probe. A check is "ok" or says what is wrong.
type health struct {
	Status string            `json:"status"`
	Checks map[string]string `json:"checks,omitempty"`
}

// Alive answers that the process is running.
func (h *Health) Alive(w http.ResponseWriter, _ *http.Request) {
	w.Header().Set("Cache-Control", "no-store")
	reply(w, http.StatusOK, health{Status: "ok"})
}

// Ready runs all checks concurrently.
func (h *Health) Ready(w http.ResponseWriter, r *http.Request) {
	type result struct {
		name string
		err  error
	}
	ctx, cancel := context.WithCancel(r.Context())
	defer cancel()
	results := make(chan result, len(h.checks))
	for name, check := range h.checks {
		go func() { results <- result{name, check(ctx)} }() // ends with the check
	}
	timer := h.clock.NewTimer(checkTimeout)
	defer timer.Stop()
	code, out := http.StatusOK, health{Status: "ok", Checks: map[string]string{}}
	for len(out.Checks) < len(h.checks) {
		select {
		case res := <-results:
			out.Checks[res.name] = "ok"
			if res.err != nil {
				code, out.Status, out.Checks[res.name] = http.StatusServiceUnavailable, "not ready", res.err.Error()
			}
		case <-timer.C():
			code, out.Status = http.StatusServiceUnavailable, "not ready"
			for name := range h.checks {
				if out.Checks[name] == "" {
					out.Checks[name] = fmt.Sprintf("no answer within %s", checkTimeout)
				}
			}
		}
	}
	w.Header().Set("Cache-Control", "no-store")
	reply(w, code, out)
}
