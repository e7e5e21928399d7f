// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package core_test

import (
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/runtime"
	clocktesting "k8s.io/utils/clock/testing"

	"github.com/platform-ai/platform/pkg/apis/core/v1alpha1"
)

// TestBudgetsChanged: a Budget is changed and deleted while requests are open. Its new limit and window hold at once, what was
// spent and reserved stays, also after a restart, and the end of a request that began under the old window forgets nothing.
func TestBudgetsChanged(t *testing.T) {
	t.Parallel()
	dir, c := t.TempDir(), clocktesting.NewFakeClock(time.Date(2026, 3, 4, 10, 30, 0, 0, time.UTC))
	s := startAt(t, dir, c)
	s.mustLimit("Provider", "p", "{type: openai, secretRef: {name: s}}")
	s.mustLimit("Budget", "all", "{limit: {tokens: 1000}, window: hour}")
	one := s.mustTask("one", "{type: ai, prompt: x, ai: {providerRef: {name: p}, maxTokens: 100}}")
	me := s.worker(one)
	begin := func(call int) error { return s.startModel(me, "one", call, map[string]any{"maxInputTokens": 50}) }
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	end := func(call, output int) {
		t.Helper()
		must(s.model(me, "one", v1alpha1.EventModelRequestCompleted, call, map[string]any{"inputTokens": 0, "outputTokens": output}))
	}
	change := func(tokens int64, w v1alpha1.BudgetWindow) {
		t.Helper()
		_, err := s.Update(s.User(), "budgets", "all", func(o runtime.Object) {
			b := o.(*v1alpha1.Budget)
			b.Spec.Limit.Tokens, b.Spec.Window = &tokens, w
		})
		must(err)
	}
	for call := range 3 {
		must(begin(call))
	}
	end(0, 100)
	s.checkBudget("begun", "all", 100, 300)

	change(500, v1alpha1.BudgetMonth)
	if err := begin(9); !exhausted(err, "all") || !strings.Contains(err.Error(), "of 500 tokens a month 100 are spent and 300 are reserved") || !strings.Contains(err.Error(), "2026-04-01T00:00:00Z") {
		t.Errorf("beyond the new limit: %v", err)
	}
	change(1000, v1alpha1.BudgetMonth)
	must(begin(3))
	end(3, 90)
	s.checkBudget("in the new window", "all", 190, 300)

	c.Step(time.Hour) // the old window is over
	end(1, 10)
	s.checkBudget("a request of the old window has ended", "all", 200, 150)
	s.Close()
	c.Step(26 * time.Hour)
	s = startAt(t, dir, c)
	me = s.worker(one)
	s.checkBudget("after a restart", "all", 200, 150)

	change(1, v1alpha1.BudgetMonth)
	end(2, 100)
	s.checkBudget("more is spent than the new limit", "all", 300, 0)
	if err := begin(10); !exhausted(err, "all") {
		t.Errorf("a Budget with more spent than its limit: %v", err)
	}

	change(1000, v1alpha1.BudgetMonth)
	must(begin(4))
	s.Remove("budgets", "all")
	s.mustLimit("Budget", "all", "{limit: {tokens: 200}, window: month}")
	s.checkBudget("another Budget of the name", "all", 0, 0)
	must(begin(5))
	end(4, 100) // of the Budget that is gone
	s.checkBudget("the end of a request of the deleted Budget", "all", 0, 150)
	end(5, 20)
	s.checkBudget("the end of its own request", "all", 20, 0)
}
