// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/utils/ptr"

	"github.com/platform-ai/platform/pkg/apis/core/v1alpha1"
	"github.com/platform-ai/platform/pkg/plan"
	"github.com/platform-ai/platform/test/kit"
	"github.com/platform-ai/platform/test/kit/standalone"
	"github.com/platform-ai/platform/test/quickclock"
)

// TestRateLimitOfAProvider: of two tasks the second waits, its stream says for what, no request is sent meanwhile, and
// it can be cancelled.
func TestRateLimitOfAProvider(t *testing.T) {
	kit.Needs(t, kit.Minutes)
	t.Parallel()
	now := &quickclock.Ahead{}
	p, model := standalone.WithModel(t, "turns: [{reply: {text: Hello.}}]", func(o *standalone.Options) { o.Clock = now })
	providers := p.API().Providers("default")
	kit.Must[*v1alpha1.Provider](t)(providers.Patch(t.Context(), "model", types.MergePatchType, []byte(`{"spec":{"rateLimit":{"requestsPerMinute":1}}}`), metav1.PatchOptions{}))
	plain := func(*v1alpha1.TaskSpec) {}
	p.OnModel("first", plain)
	p.AwaitPhase("first", v1alpha1.TaskSucceeded)
	now.By.Store(-int64(2 * kit.Patience)) // a minute after the first request is not over before the test

	events, err := p.API().ExecutionEvents("default").Watch(t.Context(), metav1.ListOptions{FieldSelector: "taskName=second"})
	if err != nil {
		t.Fatal(err)
	}
	defer events.Stop()
	p.OnModel("second", plain)
	for e := range events.ResultChan() {
		got, ok := e.Object.(*v1alpha1.ExecutionEvent)
		if e.Type == watch.Error || !ok {
			t.Fatalf("watch: %+v", e.Object)
		}
		if got.Type == v1alpha1.EventModelRequestStarted {
			t.Fatal("the second request began within a minute")
		}
		if strings.Contains(got.Summary, "rateLimit of Provider default/model (1 requests a minute)") {
			break
		}
	}
	if _, err := p.Tasks().Cancel(t.Context(), "second", &v1alpha1.TaskCancellation{}, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	p.AwaitPhase("second", v1alpha1.TaskCancelled)
	if n := len(model.Exchanges()); n != 1 {
		t.Errorf("the model got %d requests", n)
	}
}

// TestTokenBudget: a run whose next request does not fit ends with a reason of its own and is not retried. One that
// fits runs as usual.
func TestTokenBudget(t *testing.T) {
	p, model := standalone.WithModel(t, "turns: [{reply: {text: Hello.}}]")
	p.OnModel("poor", func(s *v1alpha1.TaskSpec) {
		s.AI.TokenBudget, s.RetryPolicy = ptr.To[int64](100), &v1alpha1.RetryPolicy{MaxRetries: 3}
	})
	task := p.AwaitPhase("poor", v1alpha1.TaskFailed)
	found := ""
	for _, c := range task.Status.Conditions {
		if c.Type == v1alpha1.ConditionFailed {
			found = c.Reason
		}
	}
	if found != v1alpha1.ReasonTokenBudgetExhausted || task.Status.Attempts != 1 || len(model.Exchanges()) != 0 {
		t.Errorf("%s after %d attempts and %d requests: %s", found, task.Status.Attempts, len(model.Exchanges()), task.Status.Message)
	}
	p.OnModel("rich", func(s *v1alpha1.TaskSpec) { s.AI.TokenBudget = ptr.To[int64](5000) })
	p.AwaitPhase("rich", v1alpha1.TaskSucceeded)
}

// TestProvidersCoolDown: after a run met a refusal, other runs ask the fallback first. kubectl shows why and until when.
// A request that succeeds ends it.
func TestProvidersCoolDown(t *testing.T) {
	kit.Needs(t, kit.Minutes)
	t.Parallel()
	ahead := &quickclock.Ahead{}
	p, model := standalone.WithModel(t, `
turns:
- {times: 1, match: {contains: first}, fault: {status: 429, retryAfter: '600', message: "slow down, k-1234567890"}}
- {reply: {text: Hello.}}`, func(o *standalone.Options) { o.Clock = ahead })
	c := p.API()
	withBackup(p)
	asked := func() (models string) {
		for _, e := range model.Exchanges() {
			models += e.Request.Model[len("scripted-"):]
		}
		return models
	}
	status := func() v1alpha1.ProviderStatus {
		return kit.Must[*v1alpha1.Provider](t)(c.Providers("default").Get(t.Context(), "model", metav1.GetOptions{})).Status
	}
	byAgent := func(name string) {
		p.OnModel(name, func(s *v1alpha1.TaskSpec) {
			s.AI, s.AgentRef, s.Prompt = nil, &v1alpha1.NamespacedReference{Name: "careful"}, name
		})
		p.AwaitPhase(name, v1alpha1.TaskSucceeded)
	}
	byAgent("first")
	if got := asked(); got != "12" {
		t.Errorf("the first run asked %s", got)
	}
	kit.Await(t, "the controller to check the Provider", func() bool { return status().Ready })
	s := status()
	condition := meta.FindStatusCondition(s.Conditions, v1alpha1.ConditionAvailable)
	if condition == nil || condition.Status != metav1.ConditionFalse || condition.Reason != v1alpha1.ReasonModelRateLimited || strings.Contains(condition.Message, "slow") {
		t.Fatalf("condition %+v", condition)
	}
	if s.CoolDownUntil == nil {
		t.Fatalf("status %+v", s)
	}
	table := kit.Must[[]byte](t)(c.RESTClient().Get().Namespace("default").Resource("providers").Name("model").
		SetHeader("Accept", "application/json;as=Table;v=v1;g=meta.k8s.io").DoRaw(t.Context()))
	if want := "ModelRateLimited until " + s.CoolDownUntil.UTC().Format("15:04:05Z"); !strings.Contains(string(table), want) {
		t.Errorf("the table lacks %q: %s", want, table)
	}
	byAgent("second")
	if got := asked(); got != "122" {
		t.Errorf("the runs asked %s", got)
	}
	ahead.By.Store(int64(10 * time.Second)) // after which the end of a cool-down is written at once
	p.OnModel("alone", func(*v1alpha1.TaskSpec) {})
	p.AwaitPhase("alone", v1alpha1.TaskSucceeded)
	if s := status(); s.CoolDownUntil != nil || !meta.IsStatusConditionTrue(s.Conditions, v1alpha1.ConditionAvailable) {
		t.Errorf("status after a success: %+v", s)
	}
	before := len(asked())
	byAgent("third")
	if got := asked()[before:]; got != "1" {
		t.Errorf("the third run asked %s", got)
	}
}

// TestKilledInAModelRequest: the request of a worker that was killed is a gap that is counted and keeps what it reserved
// of the budget, also after a restart of the server. The usage of the next attempt is its own.
func TestKilledInAModelRequest(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		budget  int64
		restart bool
		phase   v1alpha1.TaskPhase
		usage   v1alpha1.TaskUsage
	}{
		"room for the gap":        {5 * plan.DefaultMaxTokens, false, v1alpha1.TaskSucceeded, v1alpha1.TaskUsage{InputTokens: ptr.To[int64](4070), OutputTokens: ptr.To[int64](30), ModelRequests: 3, UnreportedRequests: 1}},
		"no room":                 {3 * plan.DefaultMaxTokens, false, v1alpha1.TaskFailed, v1alpha1.TaskUsage{InputTokens: ptr.To[int64](4000), OutputTokens: ptr.To[int64](20), ModelRequests: 2, UnreportedRequests: 1}},
		"no room after a restart": {3 * plan.DefaultMaxTokens, true, v1alpha1.TaskFailed, v1alpha1.TaskUsage{InputTokens: ptr.To[int64](4000), OutputTokens: ptr.To[int64](20), ModelRequests: 2, UnreportedRequests: 1}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p, model := standalone.WithModel(t, `
turns:
- {times: 1, reply: {text: "An answer that nobody reads"}, fault: {stall: true}}
- {match: {turn: 1}, reply: {toolCalls: [{name: file_read, arguments: {path: none}}], usage: {input: 4000, output: 20}}}
- {match: {turn: 2}, reply: {text: Hello., usage: {input: 70, output: 10}}}`, standalone.OnAPort(t))
			p.OnModel("t", func(s *v1alpha1.TaskSpec) {
				s.AI.TokenBudget, s.AI.Tools = &c.budget, []string{"file_read"}
				s.RetryPolicy = &v1alpha1.RetryPolicy{MaxRetries: 1, InitialDelay: v1alpha1.DurationOf(time.Millisecond)}
			})
			kit.Await(t, "the request", func() bool { return len(model.Exchanges()) == 1 })
			task, _ := p.Await("t", func(t *v1alpha1.Task) bool {
				return meta.IsStatusConditionTrue(t.Status.Conditions, v1alpha1.ConditionJobCreated)
			})
			pid := p.WorkerOf(task)
			if pid == 0 {
				t.Fatal("there is no worker")
			}
			if c.restart {
				p.Restart(t)
			}
			if err := syscall.Kill(pid, syscall.SIGKILL); err != nil {
				t.Fatal(err)
			}
			task = p.AwaitPhase("t", c.phase)
			if diff := cmp.Diff(&c.usage, task.Status.Usage, cmpopts.IgnoreFields(v1alpha1.TaskUsage{}, "CachedInputTokens")); diff != "" || task.Status.Attempts != 2 {
				t.Errorf("%d attempts; usage -want +got:\n%s", task.Status.Attempts, diff)
			}
			failed := meta.FindStatusCondition(task.Status.Conditions, v1alpha1.ConditionFailed)
			if c.phase == v1alpha1.TaskFailed && (failed == nil || failed.Reason != v1alpha1.ReasonTokenBudgetExhausted) {
				t.Errorf("condition %+v", failed)
			}
			if n := len(p.EventsOf("t", v1alpha1.EventModelRequestStarted)); int64(n) != c.usage.ModelRequests {
				t.Errorf("%d requests began", n)
			}
		})
	}
}

// withBackup makes the Provider backup and the Agent careful, which falls back to it from the Provider model.
func withBackup(p *standalone.Platform) {
	t := p.T
	t.Helper()
	c := p.API()
	first := kit.Must[*v1alpha1.Provider](t)(c.Providers("default").Get(t.Context(), "model", metav1.GetOptions{}))
	backup := &v1alpha1.Provider{ObjectMeta: metav1.ObjectMeta{Name: "backup"}, Spec: first.Spec}
	backup.Spec.DefaultModel = "scripted-2"
	kit.Must[*v1alpha1.Provider](t)(c.Providers("default").Create(t.Context(), backup, metav1.CreateOptions{}))
	kit.Must[*v1alpha1.Agent](t)(c.Agents("default").Create(t.Context(), &v1alpha1.Agent{ObjectMeta: metav1.ObjectMeta{Name: "careful"}, Spec: v1alpha1.AgentSpec{
		ProviderRef: &v1alpha1.NamespacedReference{Name: "model"}, Tools: []v1alpha1.AgentTool{{Name: "file_read"}},
		Model: &v1alpha1.AgentModel{Name: "scripted-1", Fallbacks: []v1alpha1.ModelFallback{{ProviderRef: &v1alpha1.NamespacedReference{Name: "backup"}, Model: "scripted-2"}}},
	}}, metav1.CreateOptions{}))
}
