// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package integration

import (
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/utils/ptr"

	"github.com/platform-ai/platform/pkg/apis/core/v1alpha1"
)

// onModel creates a task of type ai on the scripted model.
func (p *platform) onModel(name string, change func(*v1alpha1.TaskSpec)) {
	p.t.Helper()
	task := &v1alpha1.Task{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: v1alpha1.TaskSpec{
		Type: v1alpha1.TaskTypeAI, Prompt: "Say hello.", AI: &v1alpha1.TaskAI{ProviderRef: &v1alpha1.NamespacedReference{Name: "model"}},
	}}
	change(&task.Spec)
	if _, err := p.tasks().Create(p.t.Context(), task, metav1.CreateOptions{}); err != nil {
		p.t.Fatal(err)
	}
}

// TestRateLimitOfAProvider: of two tasks the second waits, its stream says for what, no request is sent meanwhile, and
// it can be cancelled.
func TestRateLimitOfAProvider(t *testing.T) {
	p, model := withModel(t, "turns: [{reply: {text: Hello.}}]")
	providers := p.client().CoreV1alpha1().Providers("default")
	provider, err := providers.Get(t.Context(), "model", metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	provider.Spec.RateLimit = &v1alpha1.RateLimit{RequestsPerMinute: ptr.To[int32](1)}
	if _, err := providers.Update(t.Context(), provider, metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
	plain := func(*v1alpha1.TaskSpec) {}
	p.onModel("first", plain)
	p.awaitPhase("first", v1alpha1.TaskSucceeded)

	events, err := p.client().CoreV1alpha1().ExecutionEvents("default").Watch(t.Context(), metav1.ListOptions{FieldSelector: "taskName=second"})
	if err != nil {
		t.Fatal(err)
	}
	defer events.Stop()
	p.onModel("second", plain)
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
	if _, err := p.tasks().Cancel(t.Context(), "second", &v1alpha1.TaskCancellation{}, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	p.awaitPhase("second", v1alpha1.TaskCancelled)
	if n := len(model.Exchanges()); n != 1 {
		t.Errorf("the model got %d requests", n)
	}
}

// TestTokenBudget: a run whose next request does not fit ends with a reason of its own and is not retried. One that
// fits runs as usual.
func TestTokenBudget(t *testing.T) {
	p, model := withModel(t, "turns: [{reply: {text: Hello.}}]")
	p.onModel("poor", func(s *v1alpha1.TaskSpec) {
		s.AI.TokenBudget, s.RetryPolicy = ptr.To[int64](100), &v1alpha1.RetryPolicy{MaxRetries: 3}
	})
	task := p.awaitPhase("poor", v1alpha1.TaskFailed)
	found := ""
	for _, c := range task.Status.Conditions {
		if c.Type == v1alpha1.ConditionFailed {
			found = c.Reason
		}
	}
	if found != v1alpha1.ReasonTokenBudgetExhausted || task.Status.Attempts != 1 || len(model.Exchanges()) != 0 {
		t.Errorf("%s after %d attempts and %d requests: %s", found, task.Status.Attempts, len(model.Exchanges()), task.Status.Message)
	}
	p.onModel("rich", func(s *v1alpha1.TaskSpec) { s.AI.TokenBudget = ptr.To[int64](5000) })
	p.awaitPhase("rich", v1alpha1.TaskSucceeded)
}
