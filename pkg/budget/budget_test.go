// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package budget_test

import (
	"errors"
	"math"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/platform-ai/platform/pkg/apis/core/v1alpha1"
	"github.com/platform-ai/platform/pkg/budget"
)

func TestSpan(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		window         v1alpha1.BudgetWindow
		at, start, end string
	}{
		{"hour", "2026-02-28T23:59:59Z", "2026-02-28T23:00:00Z", "2026-03-01T00:00:00Z"},
		{"hour", "2026-02-28T23:30:00+05:30", "2026-02-28T18:00:00Z", "2026-02-28T19:00:00Z"},
		{"day", "2026-02-28T23:30:00-02:00", "2026-03-01T00:00:00Z", "2026-03-02T00:00:00Z"},
		{"week", "2026-03-01T23:59:59Z", "2026-02-23T00:00:00Z", "2026-03-02T00:00:00Z"}, // a Sunday
		{"week", "2026-03-02T00:00:00Z", "2026-03-02T00:00:00Z", "2026-03-09T00:00:00Z"}, // a Monday
		{"month", "2026-12-31T12:00:00Z", "2026-12-01T00:00:00Z", "2027-01-01T00:00:00Z"},
	} {
		start, end := budget.Span(tc.window, at(t, tc.at))
		if !start.Equal(at(t, tc.start)) || !end.Equal(at(t, tc.end)) {
			t.Errorf("%s of %s: got %v to %v", tc.window, tc.at, start, end)
		}
	}
}

func at(t *testing.T, text string) time.Time {
	t.Helper()
	v, err := time.Parse(time.RFC3339, text)
	if err != nil {
		t.Fatal(err)
	}
	return v
}

func of(name string, spec v1alpha1.BudgetSpec) v1alpha1.Budget {
	if spec.Limit.Tokens == nil {
		spec.Limit.Tokens = new(int64(100))
	}
	return v1alpha1.Budget{ObjectMeta: metav1.ObjectMeta{Namespace: "a", Name: name, UID: types.UID(name)}, Spec: spec}
}

func TestCharges(t *testing.T) {
	t.Parallel()
	subject := func(kind v1alpha1.BudgetSubjectKind, name string) *v1alpha1.BudgetSelector {
		return &v1alpha1.BudgetSelector{Requesters: []v1alpha1.BudgetSubject{{Kind: kind, Name: name}}}
	}
	budgets := []v1alpha1.Budget{
		of("whole", v1alpha1.BudgetSpec{}),
		of("each", v1alpha1.BudgetSpec{PerIdentity: true}),
		of("robot", v1alpha1.BudgetSpec{Selector: subject(v1alpha1.BudgetServiceAccount, "robot")}),
		of("ann", v1alpha1.BudgetSpec{Selector: subject(v1alpha1.BudgetUser, "ann")}),
		of("team", v1alpha1.BudgetSpec{Selector: subject(v1alpha1.BudgetGroup, "oidc:team")}),
		of("labelled", v1alpha1.BudgetSpec{Selector: &v1alpha1.BudgetSelector{TaskLabels: map[string]string{"cost": "x"}, Agents: []string{"coder", "writer"}}}),
		of("openai", v1alpha1.BudgetSpec{Selector: &v1alpha1.BudgetSelector{Providers: []string{"openai"}}}),
	}
	other := of("other", v1alpha1.BudgetSpec{})
	other.Namespace = "b"
	budgets = append(budgets, other)
	for name, tc := range map[string]struct {
		use  budget.Use
		want []string
	}{
		"anybody":              {budget.Use{User: "eve"}, []string{"each/eve", "whole"}},
		"one with a budget":    {budget.Use{User: "ann"}, []string{"ann", "whole"}},
		"a service account":    {budget.Use{User: "system:serviceaccount:a:robot"}, []string{"robot", "whole"}},
		"one of elsewhere":     {budget.Use{User: "system:serviceaccount:b:robot"}, []string{"each/system:serviceaccount:b:robot", "whole"}},
		"a name like it":       {budget.Use{User: "robot"}, []string{"each/robot", "whole"}},
		"a group keeps each":   {budget.Use{User: "eve", Groups: []string{"oidc:team"}}, []string{"each/eve", "team", "whole"}},
		"labels and agent":     {budget.Use{User: "eve", Agent: "writer", Labels: map[string]string{"cost": "x", "y": "z"}}, []string{"each/eve", "labelled", "whole"}},
		"labels of no agent":   {budget.Use{User: "eve", Labels: map[string]string{"cost": "x"}}, []string{"each/eve", "whole"}},
		"a provider":           {budget.Use{User: "eve", Provider: "openai"}, []string{"each/eve", "openai", "whole"}},
		"provider of the next": {budget.Use{User: "eve", Provider: "b/openai"}, []string{"each/eve", "whole"}},
	} {
		tc.use.Namespace = "a"
		var got []string
		for _, c := range budget.Charges(budgets, tc.use) {
			name := c.Name
			if c.Identity != "" {
				name += "/" + c.Identity
			}
			got = append(got, name)
		}
		if !slices.Equal(got, tc.want) {
			t.Errorf("%s: got %q, want %q", name, got, tc.want)
		}
	}
}

// TestNeverExceeded plays random requests over windows against one account: what is spent and reserved never exceeds the
// limit, what is reserved is that of the open requests, and what is spent is that of the requests that ended in the window.
func TestNeverExceeded(t *testing.T) {
	t.Parallel()
	for seed := range uint64(200) {
		r := rand.New(rand.NewPCG(seed, 1))
		c := budget.Charge{Name: "b", Limit: 1000, Window: v1alpha1.BudgetHour, Warn: []int32{50, 90}}
		now := at(t, "2026-01-01T00:00:00Z")
		var a budget.Account
		var open []int64
		var reserved, spent int64
		warned, start := map[int32]bool{}, a.Start
		for range 500 {
			now = now.Add(time.Duration(r.IntN(600)-60) * time.Second) // clocks go back, too
			if a = a.At(c.Window, now); a.Start != start {
				start, spent, warned = a.Start, 0, map[int32]bool{}
			}
			if len(open) > 0 && r.IntN(2) == 0 {
				i := r.IntN(len(open))
				used := r.Int64N(open[i] + 1)
				a = a.Settle(open[i], used)
				reserved, spent = reserved-open[i], spent+used
				open = slices.Delete(open, i, i+1)
			} else {
				n := r.Int64N(400)
				next, err := a.Reserve(c, n)
				if fits := spent+reserved+n <= c.Limit; fits != (err == nil) {
					t.Fatalf("seed %d: %d of %d+%d: %v", seed, n, spent, reserved, err)
				}
				if err == nil {
					open, reserved = append(open, n), reserved+n
				}
				a = next
			}
			var p int32
			if a, p = a.Warn(c); p != 0 && warned[p] {
				t.Fatalf("seed %d: warned of %d%% twice", seed, p)
			}
			warned[p] = true
			if a.Spent != spent || a.Reserved != reserved || a.Spent+a.Reserved > c.Limit {
				t.Fatalf("seed %d: account %+v, want %d spent and %d reserved", seed, a, spent, reserved)
			}
		}
	}
}

// TestLargeNumbers: what a client or a vendor claims does not overflow.
func TestLargeNumbers(t *testing.T) {
	t.Parallel()
	c := budget.Charge{Name: "b", Limit: 1000, Window: v1alpha1.BudgetDay}
	a, err := budget.Account{}.At(c.Window, at(t, "2026-01-01T00:00:00Z")).Reserve(c, 10)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := a.Reserve(c, math.MaxInt64); !isExhausted(err) {
		t.Errorf("a reservation of everything: %v", err)
	}
	a = a.Settle(10, math.MaxInt64).Settle(0, math.MaxInt64).Settle(0, -5)
	if a.Spent != math.MaxInt64 {
		t.Errorf("spent: got %d", a.Spent)
	}
	if _, err := a.Reserve(c, 1); !isExhausted(err) {
		t.Errorf("after that: %v", err)
	}
}

func isExhausted(err error) bool {
	_, ok := errors.AsType[*budget.ExhaustedError](err)
	return ok
}
