// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/platform-ai/platform/pkg/apis/core/v1alpha1"
	"github.com/platform-ai/platform/test/kit"
	"github.com/platform-ai/platform/test/kit/standalone"
)

// changingScript: the first iteration calls a tool, whose approval is void; the second one gets an approval and does not use it; the
// third one does.
const changingScript = `
turns:
- name: done
  match: {lastRole: tool, contains: 'plan'}
  reply: {text: Done.}
- name: paid
  match: {turn: 2, lastRole: tool, contains: '"path":"/new"'}
  reply: {toolCalls: [{name: update_plan, arguments: {summary: Paid, plan_document: All is paid., goal_complete: true}}]}
- name: not now
  match: {turn: 2, lastRole: tool}
  reply: {text: Not now.}
- name: third
  match: {turn: 1, contains: Approved calls that you have not made}
  reply: {toolCalls: [{name: pay, arguments: {amount: 2}}]}
- name: second
  match: {turn: 1, contains: '"decision":"cancelled"'}
  reply: {toolCalls: [{name: request_approval, arguments: {action: pay, targetTool: pay, targetArguments: {amount: 2}}}]}
- name: first
  match: {turn: 1}
  reply: {toolCalls: [{name: pay, arguments: {amount: 1}}]}
`

// TestToolChangesWhileItWaits: an approval of a call is void once its Tool is changed, with an event, and the agent reads why. The next
// iteration has the changed Tool. The approval that it gets and does not use lets the one after it make the call, and nobody is asked
// again.
func TestToolChangesWhileItWaits(t *testing.T) {
	kit.Needs(t, kit.Minutes)
	t.Parallel()
	p, model := standalone.WithModel(t, changingScript)
	var mu sync.Mutex
	var paid []string
	bank := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		mu.Lock()
		defer mu.Unlock()
		paid = append(paid, r.URL.Path)
		_, _ = w.Write([]byte(`{"path":"` + r.URL.Path + `"}`))
	}))
	t.Cleanup(bank.Close)
	ctx, api, people := t.Context(), p.API(), p.As(t, "boss", "platform-approver")
	kit.Must[*v1alpha1.Tool](t)(api.Tools("default").Create(ctx, &v1alpha1.Tool{ObjectMeta: metav1.ObjectMeta{Name: "pay"}, Spec: v1alpha1.ToolSpec{
		Description: "pays", HTTP: &v1alpha1.ToolHTTP{URL: bank.URL + "/old"},
	}}, metav1.CreateOptions{}))
	kit.Must[*v1alpha1.Agent](t)(api.Agents("default").Create(ctx, &v1alpha1.Agent{ObjectMeta: metav1.ObjectMeta{Name: "payer"}, Spec: v1alpha1.AgentSpec{
		ProviderRef: &v1alpha1.NamespacedReference{Name: "model"}, Tools: []v1alpha1.AgentTool{{Name: "pay"}},
		Coordination: &v1alpha1.AgentCoordination{Enabled: true, Autonomous: true, ApprovalRequiredTools: []string{"pay"}},
	}}, metav1.CreateOptions{}))
	p.OnModel("payer", func(s *v1alpha1.TaskSpec) {
		s.AI, s.AgentRef = nil, &v1alpha1.NamespacedReference{Name: "payer"}
	})
	pending := func(after string) (asked v1alpha1.Approval) {
		kit.Await(t, "an approval", func() bool {
			list, err := api.Approvals("default").List(ctx, metav1.ListOptions{FieldSelector: "status.state=pending"})
			if err != nil || len(list.Items) == 0 || list.Items[0].Name == after {
				return false
			}
			asked = list.Items[0]
			return true
		})
		return asked
	}
	first := pending("")
	kit.Must[*v1alpha1.Tool](t)(api.Tools("default").Patch(ctx, "pay", types.MergePatchType, []byte(`{"spec":{"http":{"url":"`+bank.URL+`/new"}}}`), metav1.PatchOptions{}))
	second := pending(first.Name)
	kit.Must[*v1alpha1.Approval](t)(people.Approvals("default").Decide(ctx, second.Name, decision("approve", ""), metav1.CreateOptions{}))
	p.AwaitPhase("payer", v1alpha1.TaskSucceeded)

	const why = `Tool "pay" changed (from generation 1 to 2), and this run would call what it was before`
	void := kit.Must[*v1alpha1.Approval](t)(api.Approvals("default").Get(ctx, first.Name, metav1.GetOptions{}))
	if events := p.EventsOf("payer", v1alpha1.EventApprovalCancelled); void.Status.State != v1alpha1.ApprovalCancelled || void.Status.DecisionReason != why || len(events) != 1 {
		t.Errorf("%+v, events %+v", void.Status, events)
	}
	used := kit.Must[*v1alpha1.Approval](t)(api.Approvals("default").Get(ctx, second.Name, metav1.GetOptions{}))
	if used.Status.ExecutionOutcome != v1alpha1.ApprovalSucceeded || used.Spec.Binding.Tool.Generation != 2 {
		t.Errorf("%+v %+v", used.Spec.Binding, used.Status)
	}
	if n := len(p.EventsOf("payer", v1alpha1.EventApprovalRequested)); n != 2 {
		t.Errorf("people were asked %d times", n)
	}
	mu.Lock()
	defer mu.Unlock()
	if diff := cmp.Diff([]string{"/new"}, paid); diff != "" {
		t.Errorf("calls: %s", diff)
	}
	told := false
	for _, e := range model.Exchanges() {
		for _, m := range e.Request.Messages {
			told = told || m.Role == "tool" && strings.Contains(m.Text(), "approval_cancelled") && strings.Contains(m.Text(), "from generation 1 to 2")
		}
	}
	if !told {
		t.Error("the model was not told why the call was not made")
	}
}
