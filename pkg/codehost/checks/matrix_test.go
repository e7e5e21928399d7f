// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package checks_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/platform-ai/platform/pkg/codehost"
	"github.com/platform-ai/platform/pkg/codehost/checks"
)

// The cross product of everything that decides. What must hold is written here once more, as statements about the input.
func TestEachCombinationKeepsTheRules(t *testing.T) {
	outcomes := []string{"passed", "failed", "pending", "skipped", "odd"}
	sets := [][]codehost.Check{nil}
	statuses, runs := []string{""}, []string{""}
	for _, o := range outcomes {
		statuses = append(statuses, "ci/build="+o)
		runs = append(runs, "test="+o, "ci/build="+o)
	}
	for _, s := range statuses {
		for _, r := range runs {
			set := found(s + " " + r)
			sets = append(sets, set, append(many(120), set...))
		}
	}
	demands := []codehost.Required{
		{},
		{Unknown: true},
		{Any: true},
		names("ci/build"),
		names("test"),
		names("ci/build", "test", "deploy"),
		names("ci/*"),
		{Any: true, Names: []string{"te?t"}, Patterns: true},
	}
	n := 0
	for _, state := range []codehost.State{codehost.Open, codehost.Closed, codehost.Merged} {
		for _, mergeable := range []codehost.Mergeable{codehost.Clean, codehost.Conflicting, ""} {
			for _, set := range sets {
				for _, required := range demands {
					p := codehost.PullRequest{State: state, Mergeable: mergeable}
					keepsTheRules(t, p, set, required)
					n++
				}
			}
		}
	}
	t.Logf("%d combinations, each as a draft and not", n)
}

func keepsTheRules(t *testing.T, p codehost.PullRequest, set []codehost.Check, required codehost.Required) {
	t.Helper()
	v, d := checks.Evaluate(p, set, required), checks.Evaluate(draft(p), set, required)
	has := func(states ...codehost.CheckState) bool {
		return slices.ContainsFunc(set, func(c codehost.Check) bool { return slices.Contains(states, c.State) })
	}
	missing := slices.ContainsFunc(required.Names, func(name string) bool { return !reported(set, name) })
	open, conflict := p.State == codehost.Open, p.Mergeable == codehost.Conflicting
	lives := open && !conflict && !has(codehost.CheckFailed) // neither over nor lost
	for rule, holds := range map[string]bool{
		"closed wins":       (v.Status == checks.Closed) == (p.State == codehost.Closed),
		"merged wins":       (v.Status == checks.Merged) == (p.State == codehost.Merged),
		"a failed check":    (v.Status == checks.Failed) == (open && has(codehost.CheckFailed)),
		"no pass without":   v.Status != checks.Passed || lives && len(set) > 0 && !missing && !required.Unknown && !has(codehost.CheckPending, ""),
		"pass":              v.Status == checks.Passed || !lives || len(set) == 0 || missing || required.Unknown || has(codehost.CheckPending, ""),
		"no checks":         (v.Status == checks.NoChecks) == (lives && len(set) == 0 && len(required.Names) == 0 && !required.Any && !required.Unknown),
		"pending":           (v.Status == checks.Pending) == (lives && !has("") && (has(codehost.CheckPending) || missing || required.Any && len(set) == 0)),
		"waiting":           v.Waiting == (v.Status == checks.Pending),
		"a draft":           d.Status == v.Status && d.Waiting == v.Waiting && strings.Contains(d.Message, "draft") == open && !strings.Contains(v.Message, "draft"),
		"the conflict":      !open || !conflict || strings.Contains(v.Message, "conflicts with its base branch"),
		"one line":          v.Message != "" && !strings.Contains(v.Message, "\n"),
		"counts":            v.Passed+v.Failed+v.Pending+v.Unknown == len(set) && (v.Absent > 0) == missing,
		"details":           len(v.Details)+v.LeftOut == len(set)+v.Absent,
		"order is the same": checks.Evaluate(p, reversed(set), required).Status == v.Status,
	} {
		if !holds {
			t.Errorf("%s: %+v, %d checks (last %+v), %+v: %s (%t), %s", rule, p, len(set), set[max(0, len(set)-2):], required, v.Status, v.Waiting, v.Message)
		}
	}
}

// reported says for the names of this test whether a check has them.
func reported(set []codehost.Check, name string) bool {
	return slices.ContainsFunc(set, func(c codehost.Check) bool {
		switch name {
		case "ci/*":
			return strings.HasPrefix(c.Name, "ci/")
		case "te?t":
			return c.Name == "test"
		}
		return c.Name == name
	})
}

func reversed(set []codehost.Check) []codehost.Check {
	set = slices.Clone(set)
	slices.Reverse(set)
	return set
}
