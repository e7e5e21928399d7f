// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package conformance_test

import (
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"k8s.io/utils/clock"

	"github.com/platform-ai/platform/pkg/harness/conformance"
	"github.com/platform-ai/platform/test/kit"
	"github.com/platform-ai/platform/test/pipenet"
	"github.com/platform-ai/platform/test/referenceruntime/runtime"
)

var (
	token = strings.Repeat("token-", 6)
	key   = []byte(strings.Repeat("key+/", 8))
)

// run runs the kit on a reference runtime that is broken in some ways, and returns the numbers of what failed. It is called in a bubble.
func run(t *testing.T, o conformance.Options, broken ...string) *conformance.Report {
	t.Helper()
	r, err := runtime.New(runtime.Options{Instance: "i-1", Token: token, Key: key, Dir: t.TempDir(), MinLease: time.Second, Broken: broken})
	if err != nil {
		t.Fatal(err)
	}
	l := pipenet.Listen()
	server := &http.Server{Handler: r}
	go func() { _ = server.Serve(l) }()
	transport := &http.Transport{DialContext: l.DialContext}
	defer func() {
		if err := r.Close(); err != nil {
			t.Error(err)
		}
		transport.CloseIdleConnections()
		if err := server.Shutdown(t.Context()); err != nil {
			t.Error(err)
		}
	}()
	o.Endpoint, o.Transport, o.Token, o.Key = &url.URL{Scheme: "http", Host: "runtime.example.com", Path: "/"}, transport, token, key
	o.Slack, o.Clock = 5*time.Second, clock.RealClock{}
	report, err := conformance.Run(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	return report
}

func numbers(r *conformance.Report, state conformance.State) (all []string) {
	for _, result := range r.Results {
		if result.State == state {
			all = append(all, result.Number)
		}
	}
	return all
}

// TestReference: the reference runtime conforms, and each check says something about it.
func TestReference(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		report := run(t, conformance.Options{})
		for _, r := range report.Results {
			if r.State != conformance.Passed {
				t.Errorf("%s is %s: %s", r.Number, r.State, r.Happened)
			}
		}
		if !report.Conforms || report.Instance != "i-1" || report.Runtime != "referenceruntime 1" {
			t.Errorf("%v, %q, %q", report.Conforms, report.Instance, report.Runtime)
		}
	})
}

// broken has for each way to break the runtime what the kit must say.
var broken = map[string]string{
	"health-without-state": "R1", "limits-missing": "R2", "status-without-lifecycle": "R3", "changing-instance": "R4", "plain-errors": "R5",
	"open-status": "A1", "any-token": "A2", "no-capability-needed": "A3", "any-capability": "A4", "expired-capability": "A5", "reused-capability": "A6",
	"takes-new-credentials": "A7", "token-in-environment": "A8", "token-in-errors": "A8",
	"any-instance": "F1", "any-digest": "F2", "does-again": "F3", "changed-digest": "F4", "stale-epoch": "F5", "stale-epoch-repeated": "F6", "early-epoch": "F7",
	"any-generation": "F8", "forgets-generation": "F9", "digest-of-bytes": "F10",
	"unknown-members": "B1", "fence-optional": "B2", "any-length": "B3", "twice": "B1 B4",
	"session-without-generation": "S1", "status-without-sessions": "S1", "stays-after-deletion": "S2", "deletion-keeps-agent": "S3", "any-profile": "S4", "no-session-limit": "S5",
	"gap-in-numbers": "P1", "no-result": "P1", "two-results": "P1", "long-line": "P2", "long-result": "P3", "prompt-again": "P4", "resume-from-start": "P5", "two-prompts": "P6",
	"fails-silently": "P7", "no-prompt-limit": "P8", "unknown-event": "P9",
	"any-lease": "L1", "no-renewal": "L2", "any-sequence": "L3", "lost-lease-ignored": "L4", "lost-lease-usable": "L5", "lost-lease-goes-on": "L6",
	"cancel-ignored": "X1", "cancel-fails": "X1", "cancel-fences": "X2", "cancel-goes-on": "X3", "cancel-changes-outcome": "X4", "cancel-polite": "X5",
	"asks-late": "Q1", "allows-denied": "Q2", "any-arguments": "Q3", "changes-answer": "Q4", "late-answer": "Q5",
	"no-files": "W1", "delta-of-nothing": "W2", "delta-digest": "W3", "delta-moves": "W4", "delta-while-running": "W5", "delta-any-size": "W6", "shared-files": "W7",
	"finalizing-ignored": "W8", "takes-anything": "W9",
	"drain-ignored": "D1", "drain-kills": "D2", "drain-for-ever": "D3",
}

// TestBroken: for each way in which the reference runtime can be broken, the kit names the requirement that it breaks, and no other.
func TestBroken(t *testing.T) {
	kit.Needs(t, kit.Minutes)
	t.Parallel()
	for _, name := range runtime.Breaks() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				report := run(t, conformance.Options{}, name)
				if got := strings.Join(numbers(report, conformance.Failed), " "); got != broken[name] || report.Conforms {
					t.Errorf("failed are %q, want %q", got, broken[name])
				}
				for _, r := range report.Results {
					if r.State == conformance.Failed && (r.Happened == "" || r.Advice == "" || strings.Contains(r.Happened, token)) {
						t.Errorf("%+v", r)
					}
					if r.State == conformance.Failed {
						t.Logf("%s %s", r.Number, r.Happened)
					}
				}
			})
		})
	}
	for name := range broken {
		if !slices.Contains(runtime.Breaks(), name) {
			t.Errorf("there is no %s", name)
		}
	}
}
