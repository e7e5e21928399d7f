// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package core_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/endpoints/request"
	"k8s.io/apiserver/pkg/registry/rest"
	clocktesting "k8s.io/utils/clock/testing"

	"github.com/platform-ai/platform/pkg/apis/core/v1alpha1"
	"github.com/platform-ai/platform/pkg/storage/eventlog"
)

// budget reads a Budget as an administrator.
func (s *server) budget(name string) *v1alpha1.Budget {
	s.t.Helper()
	obj, err := s.Storage["budgets"].(rest.Getter).Get(s.User(), name, &metav1.GetOptions{})
	if err != nil {
		s.t.Fatal(err)
	}
	return obj.(*v1alpha1.Budget)
}

func (s *server) checkBudget(when, name string, spent, reserved int64) {
	s.t.Helper()
	if b := s.budget(name); b.Status.Spent != spent || b.Status.Reserved != reserved {
		s.t.Errorf("%s: %s has %d spent and %d reserved, want %d and %d", when, name, b.Status.Spent, b.Status.Reserved, spent, reserved)
	}
}

func (s *server) checkExhausted(when, name string, want bool, message string) {
	s.t.Helper()
	c := meta.FindStatusCondition(s.budget(name).Status.Conditions, v1alpha1.ConditionExhausted)
	if (c.Status == metav1.ConditionTrue) != want || !strings.HasPrefix(c.Message, message) {
		s.t.Errorf("%s: %s is %s: %s", when, name, c.Status, c.Message)
	}
}

func exhausted(err error, name string) bool {
	return apierrors.IsForbidden(err) && strings.Contains(err.Error(), v1alpha1.ReasonBudgetExhausted+": Budget "+name)
}

// notes returns the summaries of the events of a task with a reason.
func (s *server) notes(t *v1alpha1.Task, reason string) []string {
	s.t.Helper()
	var all []string
	page, err := s.Log.TaskPage(s.t.Context(), eventlog.Stream{Namespace: t.Namespace, Task: t.Name, UID: t.UID}, 0, 0, nil)
	if err != nil {
		s.t.Fatal(err)
	}
	for _, e := range page.Events {
		if e.Type == v1alpha1.EventTaskPhaseChanged && e.Content != nil && strings.Contains(string(e.Content.Raw), `"`+reason+`"`) {
			all = append(all, e.Summary)
		}
	}
	return all
}

// TestBudgets: a request of a task is reserved in all Budgets that select it or in none, settled by its end, and refused
// with the time at which the Budget begins again; warnings and refusals are events; a new window and a restart of the
// server change what they should.
func TestBudgets(t *testing.T) {
	t.Parallel()
	dir, c := t.TempDir(), clocktesting.NewFakeClock(time.Date(2026, 3, 4, 10, 30, 0, 0, time.UTC))
	s := startAt(t, dir, c)
	s.mustLimit("Provider", "p", "{type: openai, secretRef: {name: s}}")
	s.mustLimit("Budget", "all", "{limit: {tokens: 1000}, window: hour, warnPercent: [10, 50]}")
	s.mustLimit("Budget", "p-only", "{limit: {tokens: 300}, window: day, selector: {providers: [p]}}")
	s.mustLimit("Budget", "other", "{limit: {tokens: 1}, window: day, selector: {providers: [q]}}")
	one := s.mustTask("one", "{type: ai, prompt: x, ai: {providerRef: {name: p}, maxTokens: 100}}")
	me := s.worker(one)
	begin := func(call int) error { return s.startModel(me, "one", call, map[string]any{"maxInputTokens": 50}) }
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	must(begin(1))
	must(begin(1)) // a repeated append
	s.checkBudget("begun", "all", 0, 150)
	s.checkBudget("begun", "other", 0, 0)
	must(begin(2))
	if err := begin(3); !exhausted(err, "p-only") || !strings.Contains(err.Error(), "begins again at 2026-03-05T00:00:00Z") {
		t.Errorf("a third request: %v", err)
	}
	s.checkBudget("refused", "all", 0, 300)
	s.checkExhausted("the rest is reserved", "p-only", true, "0 of 300 tokens are spent and 300 are reserved by requests")
	s.checkExhausted("half is reserved", "all", false, "700 of 1000 tokens are left")
	must(s.model(me, "one", v1alpha1.EventModelRequestCompleted, 1, map[string]any{"inputTokens": 40, "outputTokens": 60}))
	s.checkBudget("ended", "p-only", 100, 150)
	s.checkExhausted("a request has ended", "p-only", false, "50 of 300 tokens are left")
	must(s.model(me, "one", v1alpha1.EventModelRequestFailed, 2, map[string]any{"errorClass": "auth"}))
	s.checkBudget("refused by the vendor", "p-only", 100, 0)
	must(begin(4))
	must(s.model(me, "one", v1alpha1.EventModelRequestFailed, 4, map[string]any{"errorClass": "cut_stream"}))
	s.checkBudget("no usage reported", "p-only", 250, 0)
	if got := s.notes(one, v1alpha1.ReasonBudgetExhausted); len(got) != 1 {
		t.Errorf("events of refusals: %q", got)
	}
	if got := s.notes(one, v1alpha1.ReasonBudgetWarning); len(got) != 2 || !strings.Contains(got[0], "Budget all: 100 of 1000") || !strings.Contains(got[1], "Budget p-only: 250 of 300") {
		t.Errorf("warnings: %q", got)
	}

	s.Close()
	c.Step(time.Hour)
	s = startAt(t, dir, c)
	me = s.worker(one)
	s.checkBudget("after a restart in the next hour", "all", 0, 0)
	s.checkBudget("after a restart", "p-only", 250, 0)
	c.Step(24 * time.Hour)
	must(begin(5))
	s.checkBudget("the next day", "p-only", 0, 150)

	// The request of a run that dies without an end is spent as a whole once a controller has started the next attempt. A late end
	// gives back what it did not use.
	must(s.startAttempt("one", 2))
	s.checkBudget("the next attempt", "p-only", 150, 0)
	s.Close()
	s = startAt(t, dir, c)
	me = s.worker(one)
	s.checkBudget("a restart after the next attempt", "p-only", 150, 0)
	must(s.model(me, "one", v1alpha1.EventModelRequestCompleted, 5, map[string]any{"inputTokens": 10, "outputTokens": 10}))
	s.checkBudget("the end of an earlier attempt", "p-only", 20, 0)
	must(begin(6))
	_, err := s.CreateNamed(s.As(controllers, nil), "tasks/events", "one", ev(v1alpha1.EventTaskFailed))
	must(err)
	s.checkBudget("the end of the task", "p-only", 170, 0)

	if _, err := s.Storage["budgets"].(rest.Getter).Get(me, "all", &metav1.GetOptions{}); !apierrors.IsForbidden(err) {
		t.Errorf("a worker reads a Budget: %v", err)
	}
}

// TestBudgetsOfZero: a vendor that reports that a request used nothing, or reports nothing, is charged what was reserved, unless its
// Provider says that the model is free.
func TestBudgetsOfZero(t *testing.T) {
	t.Parallel()
	s := startIn(t, t.TempDir())
	s.mustLimit("Provider", "p", `{type: openai, secretRef: {name: s}, prices: [
		{model: "*", effectiveFrom: "2020-01-01", currency: USD, input: "0", output: "1"}, {model: free, effectiveFrom: "2020-01-01", currency: USD, input: "0", output: "0"}]}`)
	s.mustLimit("Budget", "all", "{limit: {tokens: 10000}, window: month}")
	one := s.mustTask("one", "{type: ai, prompt: x, ai: {providerRef: {name: p}, maxTokens: 100}}")
	me := s.worker(one)
	spent := int64(0)
	for call, c := range []struct {
		model string
		end   map[string]any
		want  int64
	}{
		{"m", map[string]any{"inputTokens": 0, "outputTokens": 0}, 150},
		{"m", nil, 150},
		{"m", map[string]any{"inputTokens": 0, "outputTokens": 1}, 1},
		{"free", map[string]any{"inputTokens": 0, "outputTokens": 0}, 0},
		{"free", nil, 0},
		{"free", map[string]any{"inputTokens": 40}, 40},
		{"free", map[string]any{"inputTokens": 40, "outputTokens": 2}, 42},
	} {
		if err := s.startModel(me, "one", call, map[string]any{"maxInputTokens": 50, "model": c.model}); err != nil {
			t.Fatal(err)
		}
		if err := s.model(me, "one", v1alpha1.EventModelRequestCompleted, call, c.end); err != nil {
			t.Fatal(err)
		}
		spent += c.want
		s.checkBudget(fmt.Sprintf("model %s, %v", c.model, c.end), "all", spent, 0)
	}
}

// TestBudgetsOfFailures: a request that the vendor refused, or did not get, spends nothing. Any other failure spends all of it.
func TestBudgetsOfFailures(t *testing.T) {
	t.Parallel()
	s := startIn(t, t.TempDir())
	s.mustLimit("Provider", "p", "{type: openai, secretRef: {name: s}}")
	s.mustLimit("Budget", "all", "{limit: {tokens: 10000}, window: month}")
	one := s.mustTask("one", "{type: ai, prompt: x, ai: {providerRef: {name: p}, maxTokens: 100}}")
	me := s.worker(one)
	spent := int64(0)
	for call, c := range []struct {
		end  map[string]any
		want int64
	}{
		{map[string]any{"errorClass": "auth"}, 0},
		{map[string]any{"errorClass": "rate_limited"}, 0},
		{map[string]any{"errorClass": "invalid_request"}, 0},
		{map[string]any{"errorClass": "unreachable", "unsent": true}, 0},
		{map[string]any{"errorClass": "unreachable"}, 100},
		{map[string]any{"errorClass": "server_error"}, 100},
		{map[string]any{"errorClass": "canceled", "inputTokens": 7}, 100},
		{map[string]any{"errorClass": "rate_limited", "inputTokens": 7}, 100}, // it had begun to report
	} {
		if err := s.startModel(me, "one", call, nil); err != nil {
			t.Fatal(err)
		}
		if err := s.model(me, "one", v1alpha1.EventModelRequestFailed, call, c.end); err != nil {
			t.Fatal(err)
		}
		spent += c.want
		s.checkBudget(fmt.Sprint(c.end), "all", spent, 0)
	}
}

// TestBudgetsPerIdentity: each identity has the limit for itself, except those that another Budget names; children count
// for whoever asked for the root, whatever labels they have.
func TestBudgetsPerIdentity(t *testing.T) {
	t.Parallel()
	s := startIn(t, t.TempDir())
	s.mustLimit("Provider", "p", "{type: openai, secretRef: {name: s}}")
	s.mustLimit("Budget", "each", "{limit: {tokens: 150}, window: month, perIdentity: true}")
	s.mustLimit("Budget", "team", "{limit: {tokens: 250}, window: month, selector: {requesters: [{kind: Group, name: 'oidc:team'}]}}")
	for i, name := range []string{"ann", "bob", "eve"} {
		name = "of-" + name
		obj, err := s.Decode("apiVersion: core.platform.ai/v1alpha1\nkind: Task\nmetadata: {name: " + name + ", annotations: {platform.ai/requested-by-groups: '[\"liars\"]'}}\n" +
			"spec: {type: ai, prompt: x, ai: {providerRef: {name: p}, maxTokens: 100}}")
		if err != nil {
			t.Fatal(err)
		}
		who := request.WithUser(s.User(), &user.DefaultInfo{Name: name[3:], Groups: []string{"system:authenticated", "oidc:team"}})
		obj, err = s.Create(who, "tasks", obj)
		if err != nil {
			t.Fatal(err)
		}
		task := obj.(*v1alpha1.Task)
		if got := task.Annotations[v1alpha1.AnnotationRequestedByGroups]; got != `["oidc:team"]` {
			t.Errorf("groups of %s: %s", name, got)
		}
		by := s.worker(task)
		err = s.startModel(by, name, 1, nil)
		if i < 2 && err != nil || i == 2 && !exhausted(err, "team") {
			t.Errorf("%s: %v", name, err)
		}
		if err := s.startModel(by, name, 2, nil); i == 0 && !exhausted(err, "each of ann") {
			t.Errorf("a second request of %s: %v", name, err)
		}
	}
	b := s.budget("each")
	if len(b.Status.Identities) != 2 || b.Status.Identities[0] != (v1alpha1.BudgetIdentity{Name: "ann", Reserved: 100}) {
		t.Errorf("status: %+v", b.Status)
	}
}

// TestBudgetsOfCost: a request of a task is reserved and settled in money, by the price in force. A model without a price
// in the currency is refused, and an event says so. A worker that begins a request again gets nothing back.
func TestBudgetsOfCost(t *testing.T) {
	t.Parallel()
	s := startAt(t, t.TempDir(), clocktesting.NewFakeClock(time.Date(2026, 3, 4, 10, 30, 0, 0, time.UTC)))
	s.mustLimit("Provider", "p", `{type: openai, secretRef: {name: s}, prices: [
		{model: m, effectiveFrom: "2026-01-01", currency: USD, input: "100", output: "1000", cachedInput: "10"},
		{model: m, effectiveFrom: "2027-01-01", currency: USD, input: "1", output: "1"},
		{model: "euro", effectiveFrom: "2026-01-01", currency: EUR, input: "1", output: "1"}]}`)
	s.mustLimit("Budget", "money", `{limit: {cost: {amount: "0.5", currency: USD}}, window: day, warnPercent: [10]}`)
	one := s.mustTask("one", "{type: ai, prompt: x, ai: {providerRef: {name: p}, maxTokens: 100}}")
	me := s.worker(one)
	begin := func(call int, model string) error {
		return s.startModel(me, "one", call, map[string]any{"maxInputTokens": 500, "model": model})
	}
	check := func(when, spent, reserved string) {
		t.Helper()
		b := s.budget("money")
		if m := b.Status.Cost; m == nil || m.Spent != spent || m.Reserved != reserved || m.Limit != "0.5" || m.Currency != "USD" || b.Status.Spent+b.Status.Limit != 0 {
			t.Errorf("%s: %+v %+v, want %s and %s", when, b.Status, m, spent, reserved)
		}
	}
	for _, model := range []string{"euro", "unknown"} {
		err := begin(9, model)
		if !apierrors.IsForbidden(err) || !strings.Contains(err.Error(), v1alpha1.ReasonBudgetUnpriced+": Budget money limits the cost in USD, and no price in USD is in force for model "+model+" of Provider p") {
			t.Errorf("model %s: %v", model, err)
		}
	}
	if got := s.notes(one, v1alpha1.ReasonBudgetUnpriced); len(got) != 1 { // both refusals are of one request
		t.Errorf("events of refusals: %q", got)
	}
	check("refused", "0", "0")
	if err := begin(1, "m"); err != nil {
		t.Fatal(err)
	}
	check("begun", "0", "0.15")
	if err := s.model(me, "one", v1alpha1.EventModelRequestCompleted, 1, map[string]any{"inputTokens": 400, "outputTokens": 10, "cachedInputTokens": 300, "cacheWriteInputTokens": 0}); err != nil {
		t.Fatal(err)
	}
	check("ended", "0.023", "0") // 100·100 + 300·10 + 10·1000, in millionths
	for _, call := range []int{2, 3} {
		if err := begin(call, "m"); err != nil {
			t.Fatal(err)
		}
	}
	if err := s.model(me, "one", v1alpha1.EventModelRequestFailed, 2, map[string]any{"errorClass": "cut_stream"}); err != nil {
		t.Fatal(err)
	}
	check("an end without usage", "0.173", "0.15")
	if got := s.notes(one, v1alpha1.ReasonBudgetWarning); len(got) != 1 || !strings.Contains(got[0], "Budget money: 0.173 of 0.5 USD a day are spent, which is 10% or more") {
		t.Errorf("warnings: %q", got)
	}
	start := func(dedup string) error { // the third request again, by an event that is not a repetition
		return s.tell(me, "one", v1alpha1.EventModelRequestStarted, dedup, map[string]any{
			"iteration": 3, "attempt": 1, "provider": "p", "model": "m", "maxInputTokens": 500,
		})
	}
	if err := start("again"); err != nil {
		t.Fatal(err)
	}
	check("begun again", "0.323", "0.15")
	if err := start("and again"); !exhausted(err, "money") || !strings.Contains(err.Error(), "the request may need 0.15 USD; of 0.5 USD a day 0.473 are spent and 0 are reserved") {
		t.Errorf("begun for the third time: %v", err)
	}
	check("refused again", "0.323", "0.15")
}
