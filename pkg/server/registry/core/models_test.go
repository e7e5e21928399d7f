// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package core_test

import (
	"context"
	"fmt"
	"maps"
	"strings"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	clocktesting "k8s.io/utils/clock/testing"

	"github.com/platform-ai/platform/pkg/apis/core/v1alpha1"
	"github.com/platform-ai/platform/pkg/event"
	"github.com/platform-ai/platform/pkg/llm"
	"github.com/platform-ai/platform/pkg/storage/eventlog"
)

// limits are a Provider with a limit, an agent with another one, and one that uses any provider of a type.
const limits = `
apiVersion: core.platform.ai/v1alpha1
kind: %s
metadata: {name: %s}
spec: %s
`

// model appends the event of a model request as the worker of a task, and returns the error.
func (s *server) model(by context.Context, task string, typ v1alpha1.EventType, call int, content map[string]any) error {
	all := map[string]any{"iteration": call, "attempt": 1, "provider": "p"}
	maps.Copy(all, content)
	e := event.New(typ, v1alpha1.SeverityInfo, fmt.Sprint(task, typ, call), string(typ), all)
	_, err := s.CreateNamed(by, "tasks/events", task, e)
	return err
}

func (s *server) startModel(by context.Context, task string, call int, content map[string]any) error {
	return s.model(by, task, v1alpha1.EventModelRequestStarted, call, content)
}

func (s *server) mustLimit(kind, name, spec string) {
	s.MustApply(strings.ToLower(kind)+"s", fmt.Sprintf(limits, kind, name, spec))
}

// waits returns for how many seconds a request must wait; 0 if it began.
func waits(t *testing.T, err error) int {
	t.Helper()
	if err == nil {
		return 0
	}
	seconds := 0
	_, text, _ := strings.Cut(err.Error(), "waits for its turn, in about ")
	if _, scan := fmt.Sscanf(text, "%d s", &seconds); scan != nil || !apierrors.IsTooManyRequests(err) {
		t.Fatalf("got %v", err)
	}
	return seconds
}

// TestRateLimits: the limit of a Provider holds over all tasks that use it, whatever a worker says about the
// provider; the event of a start that must wait is not stored, and the stream says once what it waits for.
func TestRateLimits(t *testing.T) {
	c := clocktesting.NewFakeClock(time.Now())
	s := startAt(t, t.TempDir(), c)
	s.mustLimit("Provider", "p", "{type: openai, secretRef: {name: s}, rateLimit: {requestsPerMinute: 2}}")
	s.mustLimit("Provider", "free", "{type: anthropic, secretRef: {name: s}}")
	s.mustLimit("Agent", "a", "{providerRef: {name: free}, rateLimit: {tokensPerMinute: 100}, model: {maxTokens: 60}}")
	byName, byType := "{type: ai, prompt: x, ai: {providerRef: {name: p}}}", "{type: ai, prompt: x, ai: {provider: openai}}"
	one, two, agent := s.mustTask("one", byName), s.mustTask("two", byType), s.mustTask("agent", "{type: ai, prompt: x, agentRef: {name: a}}")
	me, other, third := s.worker(one), s.worker(two), s.worker(agent)

	for call := range 2 {
		if err := s.startModel(me, "one", call, nil); err != nil {
			t.Fatal(err)
		}
	}
	if err := s.startModel(me, "one", 1, nil); err != nil {
		t.Errorf("a repeated append: %v", err)
	}
	for range 3 {
		if got := waits(t, s.startModel(other, "two", 1, nil)); got != 60 {
			t.Errorf("waits %d s", got)
		}
	}
	if got := waits(t, s.startModel(me, "one", 2, map[string]any{"provider": "free"})); got == 0 {
		t.Error("a worker that names another provider is not limited")
	}
	if err := s.startModel(other, "two", 1, map[string]any{"provider": "free"}); !apierrors.IsBadRequest(err) {
		t.Errorf("a provider of another type: %v", err)
	}
	c.Step(61 * time.Second)
	if got := waits(t, s.startModel(other, "two", 1, nil)); got != 0 {
		t.Errorf("waits %d s", got)
	}
	page, err := s.Log.TaskPage(t.Context(), eventlog.Stream{Namespace: "default", Task: "two", UID: two.UID}, 0, 0, nil)
	if err != nil || len(page.Events) != 2 || page.Events[0].Type != v1alpha1.EventTaskPhaseChanged || !strings.Contains(page.Events[0].Summary, "rateLimit of Provider default/p (2 requests a minute)") {
		t.Errorf("%v: %+v", err, page.Events)
	}

	// The agent's limit of tokens, and the settlement.
	if err := s.startModel(third, "agent", 1, map[string]any{"provider": "free"}); err != nil {
		t.Fatal(err)
	}
	if got := waits(t, s.startModel(third, "agent", 2, nil)); got == 0 {
		t.Error("120 tokens of 100")
	}
	if err := s.model(third, "agent", v1alpha1.EventModelRequestCompleted, 1, map[string]any{"inputTokens": 5, "outputTokens": 6}); err != nil {
		t.Fatal(err)
	}
	if got := waits(t, s.startModel(third, "agent", 2, nil)); got != 0 {
		t.Errorf("waits %d s", got)
	}
	// An end without a start counts as well.
	if err := s.model(third, "agent", v1alpha1.EventModelRequestCompleted, 9, map[string]any{"inputTokens": 5000, "outputTokens": 6}); err != nil {
		t.Fatal(err)
	}
	if err := s.model(third, "agent", v1alpha1.EventModelRequestFailed, 2, map[string]any{"errorClass": "auth"}); err != nil {
		t.Fatal(err)
	}
	if got := waits(t, s.startModel(third, "agent", 3, nil)); got == 0 {
		t.Error("a request without a start is not counted")
	}
}

// TestTokenBudgets: a budget holds for a task, for the tasks below it and after a restart of the server; what is not
// reported counts by its estimate, and what the vendor refused counts nothing.
func TestTokenBudgets(t *testing.T) {
	dir := t.TempDir()
	s := startIn(t, dir)
	s.mustLimit("Provider", "p", "{type: openai, secretRef: {name: s}}")
	s.mustLimit("Agent", "helper", "{providerRef: {name: p}, model: {maxTokens: 100}}")
	s.mustLimit("Agent", "boss", "{providerRef: {name: p}, coordination: {enabled: true, allowedAgents: [{name: \"*\"}]}}")
	root := s.mustTask("root", "{type: ai, prompt: x, agentRef: {name: boss}, ai: {maxTokens: 100, tokenBudget: 1000}}")
	me := s.worker(root)
	obj, err := s.Decode(fmt.Sprintf(`
apiVersion: core.platform.ai/v1alpha1
kind: Task
metadata:
  name: child
  namespace: default
  ownerReferences: [{apiVersion: core.platform.ai/v1alpha1, kind: Task, name: root, uid: %s, controller: true, blockOwnerDeletion: true}]
spec: {type: ai, prompt: x, agentRef: {name: helper}}
`, root.UID))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := s.Create(me, "tasks", obj); err != nil {
		t.Fatal(err)
	}
	child := s.Task("child")
	below := s.worker(child)
	check := func(what string, err error, room bool) {
		t.Helper()
		refused := apierrors.IsForbidden(err) && strings.Contains(err.Error(), "spec.ai.tokenBudget of task root")
		if room && err != nil || !room && !refused {
			t.Errorf("%s: got %v", what, err)
		}
	}
	check("first", s.startModel(me, "root", 1, nil), true)
	check("end", s.model(me, "root", v1alpha1.EventModelRequestCompleted, 1, map[string]any{"inputTokens": 300, "outputTokens": 50}), true) // 350
	check("child", s.startModel(below, "child", 1, nil), true)                                                                              // 450, and no end: a gap
	check("refused key", s.startModel(below, "child", 2, nil), true)
	check("end", s.model(below, "child", v1alpha1.EventModelRequestFailed, 2, map[string]any{"errorClass": "auth"}), true)
	check("second", s.startModel(me, "root", 2, nil), true) // 400 with the input of the first: 850
	check("no end", s.model(me, "root", v1alpha1.EventModelRequestFailed, 2, map[string]any{"errorClass": "cut_stream"}), true)
	check("third", s.startModel(me, "root", 3, nil), false)
	check("child", s.startModel(below, "child", 3, nil), true) // 950
	check("child", s.startModel(below, "child", 4, nil), false)
	s.Close()
	s = startIn(t, dir)
	check("child after a restart", s.startModel(below, "child", 4, nil), false)
	check("end after a restart", s.model(below, "child", v1alpha1.EventModelRequestCompleted, 3, map[string]any{"inputTokens": 10, "outputTokens": 10}), true) // 870
	check("child", s.startModel(below, "child", 4, nil), true)                                                                                                 // 980
}

// TestFirstInputIsReserved: the first request of a run and of a child reserves about what its input has, in budgets and
// in tokens a minute, also after a restart. A small input takes nothing from a small budget.
func TestFirstInputIsReserved(t *testing.T) {
	dir := t.TempDir()
	s := startIn(t, dir)
	s.mustLimit("Provider", "p", "{type: openai, secretRef: {name: s}, rateLimit: {tokensPerMinute: 2000}}")
	s.mustLimit("Agent", "helper", "{providerRef: {name: p}, model: {maxTokens: 100}}")
	input := func(bytes int) map[string]any {
		return map[string]any{"maxInputTokens": (&llm.Request{Messages: []llm.Message{{Text: strings.Repeat("x", bytes)}}}).MaxInput()}
	}
	refused := func(what string, err error) {
		t.Helper()
		if !apierrors.IsForbidden(err) || !strings.Contains(err.Error(), "spec.ai.tokenBudget") {
			t.Errorf("%s: got %v", what, err)
		}
	}
	task := func(name string, budget int) context.Context {
		return s.worker(s.mustTask(name, fmt.Sprintf("{type: ai, prompt: x, agentRef: {name: helper}, ai: {tokenBudget: %d}}", budget)))
	}
	small := task("small", 120)
	if err := s.startModel(small, "small", 1, input(20)); err != nil {
		t.Errorf("a small request of a small budget: %v", err)
	}
	refused("a large input", s.startModel(task("large", 1000), "large", 1, input(4000)))
	me := task("one", 3000)
	if err := s.startModel(me, "one", 1, input(4000)); err != nil { // 1108, and no end: a gap
		t.Error(err)
	}
	if after := waits(t, s.startModel(task("two", 3000), "two", 1, input(4000))); after == 0 {
		t.Error("two inputs of 1000 tokens fit into 2000 a minute with 200 for the outputs")
	}
	s.Close()
	s = startIn(t, dir) // forgets the last minute, and reads the budget again
	refused("what a gap had reserved", s.startModel(me, "one", 2, input(8000)))
}
