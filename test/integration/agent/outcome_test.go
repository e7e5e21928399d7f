// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/platform-ai/platform/pkg/apis/core/v1alpha1"
	"github.com/platform-ai/platform/test/kit"
	"github.com/platform-ai/platform/test/kit/standalone"
)

// outcomeScript: the model calls a tool whose answer is cut, and then fails; the retry, which was told so, calls the tool again.
const outcomeScript = `
turns:
- {match: {turn: 1}, reply: {toolCalls: [{id: "call-1", name: pay, arguments: {amount: 1}}]}}
- {match: {turn: 2, contains: '"success":true'}, reply: {text: Paid.}}
- {match: {turn: 2}, fault: {status: 500, message: Sorry}}
`

// TestOutcomeUnknown: of an approved call whose request was received and whose answer was cut, the approval, the event and the model's
// result say that its outcome is unknown. The prompt of the retry names the call, and whoever is asked to approve the same call again
// reads that it may happen twice.
func TestOutcomeUnknown(t *testing.T) {
	kit.Needs(t, kit.Minutes)
	t.Parallel()
	p, model := standalone.WithModel(t, outcomeScript)
	var paid atomic.Int64
	bank := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		if paid.Add(1) == 1 {
			panic(http.ErrAbortHandler)
		}
		_, _ = w.Write([]byte(`{}`))
	}))
	t.Cleanup(bank.Close)
	api := p.API()
	if _, err := api.Tools("default").Create(t.Context(), &v1alpha1.Tool{ObjectMeta: metav1.ObjectMeta{Name: "pay"}, Spec: v1alpha1.ToolSpec{
		Description: "pays", HTTP: &v1alpha1.ToolHTTP{URL: bank.URL},
	}}, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	if _, err := api.Agents("default").Create(t.Context(), &v1alpha1.Agent{ObjectMeta: metav1.ObjectMeta{Name: "payer"}, Spec: v1alpha1.AgentSpec{
		ProviderRef: &v1alpha1.NamespacedReference{Name: "model"}, Tools: []v1alpha1.AgentTool{{Name: "pay"}},
		Coordination: &v1alpha1.AgentCoordination{ApprovalRequiredTools: []string{"pay"}},
	}}, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	people := p.As(t, "boss", "platform-approver")
	p.OnModel("payer", func(s *v1alpha1.TaskSpec) {
		s.AI, s.AgentRef = nil, &v1alpha1.NamespacedReference{Name: "payer"}
		s.RetryPolicy = &v1alpha1.RetryPolicy{MaxRetries: 1, InitialDelay: v1alpha1.DurationOf(time.Millisecond)}
	})
	approve := func(n int) (asked v1alpha1.Approval) {
		kit.Await(t, "an approval", func() bool {
			list, err := api.Approvals("default").List(t.Context(), metav1.ListOptions{})
			if err != nil || len(list.Items) < n {
				return false
			}
			for _, a := range list.Items {
				if a.Status.State == v1alpha1.ApprovalPending {
					asked = a
					return true
				}
			}
			return false
		})
		if _, err := people.Approvals("default").Decide(t.Context(), asked.Name, &v1alpha1.ApprovalDecision{Spec: v1alpha1.ApprovalDecisionSpec{Decision: "approve"}}, metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
		return asked
	}
	first := approve(1)
	second := approve(2)
	p.AwaitPhase("payer", v1alpha1.TaskSucceeded)
	if first.Spec.RiskSummary != "" || !strings.Contains(second.Spec.RiskSummary, "it may happen twice") {
		t.Errorf("the risks are %q and %q", first.Spec.RiskSummary, second.Spec.RiskSummary)
	}
	if a, err := api.Approvals("default").Get(t.Context(), first.Name, metav1.GetOptions{}); err != nil || a.Status.ExecutionOutcome != v1alpha1.ApprovalUnknown {
		t.Errorf("the outcome of the first call is %q, %v", a.Status.ExecutionOutcome, err)
	}
	if failed := p.EventsOf("payer", v1alpha1.EventToolCallFailed); len(failed) != 1 || !strings.Contains(string(failed[0].Content.Raw), `"outcome_unknown"`) {
		t.Errorf("events %+v", failed)
	}
	told, warned := false, false
	for _, e := range model.Exchanges() {
		for _, m := range e.Request.Messages {
			told = told || m.Role == "tool" && strings.Contains(m.Text(), "it may have happened")
			warned = warned || m.Role == "user" && strings.Contains(m.Text(), "- pay (call call-1 of attempt 1, approved as "+first.Name+")")
		}
	}
	if !told || !warned {
		t.Errorf("the model was told by the result %v and by the prompt %v", told, warned)
	}
}

// TestKilledInATool: a call in which its worker was killed has an end in the stream, which says that it may have been carried out.
func TestKilledInATool(t *testing.T) {
	kit.Needs(t, kit.Minutes)
	t.Parallel()
	p, _ := standalone.WithModel(t, `
models: [scripted-1]
turns:
- reply: {toolCalls: [{id: call-1, name: pay, arguments: {}}]}`)
	asked := make(chan struct{}, 1)
	bank := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body) // until then the server does not notice that the worker is gone
		asked <- struct{}{}
		<-r.Context().Done()
	}))
	t.Cleanup(bank.Close)
	if _, err := p.API().Tools("default").Create(t.Context(), &v1alpha1.Tool{ObjectMeta: metav1.ObjectMeta{Name: "pay"}, Spec: v1alpha1.ToolSpec{
		Description: "pays", HTTP: &v1alpha1.ToolHTTP{URL: bank.URL},
	}}, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	p.OnModel("payer", func(s *v1alpha1.TaskSpec) { s.AI.Tools = []string{"pay"} })
	<-asked
	task, _ := p.Await("payer", func(t *v1alpha1.Task) bool {
		return meta.IsStatusConditionTrue(t.Status.Conditions, v1alpha1.ConditionJobCreated)
	})
	pid := p.WorkerOf(task)
	if pid == 0 {
		t.Fatal("there is no worker")
	}
	if err := syscall.Kill(pid, syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	p.AwaitPhase("payer", v1alpha1.TaskFailed)
	if ends := p.EventsOf("payer", v1alpha1.EventToolCallFailed); len(ends) != 1 || ends[0].ToolCallID != "call-1" || !strings.Contains(string(ends[0].Content.Raw), `"outcome_unknown"`) {
		t.Errorf("events %+v", ends)
	}
}
