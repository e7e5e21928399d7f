// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package monitor

import (
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/platform-ai/platform/pkg/apis/core/v1alpha1"
)

// TestReviewOf: the last object with a verdict that a reviewer may give is the review. All other text is ignored.
func TestReviewOf(t *testing.T) {
	const passed = `{"verdict":"passed","summary":"Good."}`
	for said, want := range map[string]v1alpha1.MonitorVerdict{
		passed:                              v1alpha1.MonitorVerdictPassed,
		"Here:\n```json\n" + passed + "```": v1alpha1.MonitorVerdictPassed,
		passed + ` and then {"verdict":"needs_changes"}`:            v1alpha1.MonitorVerdictNeedsChanges,
		`{"note":{"verdict":"passed"}} {"verdict":"needs_human"} {`: v1alpha1.MonitorVerdictNeedsHuman,
		`{{{"verdict":"security_sensitive"}`:                        v1alpha1.MonitorVerdictSecuritySensitive,
		"":                                                          "",
		"Good.":                                                     "",
		`{"verdict":"approved"}`:                                    "",
		`{"verdict":"stale"}`:                                       "",
		`{"verdict":["passed"]}`:                                    "",
		`{"note":{"verdict":"passed"}}`:                             "",
		strings.Repeat("{", 100000) + passed:                        "",
	} {
		if r, ok := reviewOf(said); r.Verdict != want || ok != (want != "") {
			t.Errorf("%.60q: %v %q", said, ok, r.Verdict)
		}
	}
	r, _ := reviewOf(`{"verdict":"needs_changes","findings":[` + strings.Repeat(`{"path":"a","line":-1,"priority":"P9","title":"x\ny"},`, 60) + `{}]}`)
	if len(r.Findings) != maxFindings || r.Findings[0].Line != 0 || r.Findings[0].Priority != v1alpha1.MonitorP3 || strings.Contains(r.Findings[0].Title, "\n") {
		t.Errorf("%d %+v", len(r.Findings), r.Findings[0])
	}
}

// TestPlanOf: a plan needs a risk and a text.
func TestPlanOf(t *testing.T) {
	if p, ok := planOf(`So: {"risk":"high","plan":"1. Build it."}`); !ok || p.Risk != v1alpha1.MonitorRiskHigh || p.Plan != "1. Build it." {
		t.Errorf("%v %+v", ok, p)
	}
	for _, said := range []string{"", "1. Build it.", `{"risk":"none","plan":"x"}`, `{"risk":"low","plan":" "}`, `{"plan":"x"}`} {
		if _, ok := planOf(said); ok {
			t.Errorf("%q is a plan", said)
		}
	}
}

// FuzzReviewOf: whatever an agent says, what is kept of it fits the fields of an item.
func FuzzReviewOf(f *testing.F) {
	f.Add(`{"verdict":"needs_changes","summary":"s","findings":[{"path":"a.go","line":3,"priority":"P0","title":"t","body":"b"}]}`)
	f.Add("{\"verdict\":\"passed\",\"summary\":\"\xff\u202e\"}")
	f.Fuzz(func(t *testing.T, said string) {
		r, ok := reviewOf(said)
		if ok && (len(r.Summary) > maxSummary || !utf8.ValidString(r.Summary) || len(r.Findings) > maxFindings) {
			t.Errorf("%d bytes, %d findings", len(r.Summary), len(r.Findings))
		}
		for _, f := range r.Findings {
			if len(f.Path) > 1024 || len(f.Title) > 512 || len(f.Body) > maxSummary || f.Line < 0 || priorityOf(f.Priority) < 0 || !utf8.ValidString(f.Path+f.Title+f.Body) {
				t.Errorf("%+v", f)
			}
		}
		_, comments := bodyOf(&v1alpha1.RepositoryMonitor{}, &v1alpha1.MonitorItemReview{Findings: r.Findings})
		if len(comments) > 0 {
			t.Error("a summary has comments on lines")
		}
	})
}
