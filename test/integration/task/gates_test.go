// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package task

import (
	"slices"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/platform-ai/platform/pkg/apis/core/v1alpha1"
	"github.com/platform-ai/platform/test/kit"
	"github.com/platform-ai/platform/test/kit/standalone"
)

// gatesScript: a careful chief, whose programs need an approval, has another agent run one.
const gatesScript = `
models: [scripted-1]
turns:
- name: delegate
  match: {turn: 1, lastRole: user, contains: Have it run}
  reply: {toolCalls: [{name: delegate_task, arguments: {agent: hands, prompt: "Run it."}}]}
- name: wait
  match: {turn: 2, lastRole: tool, contains: '"status":"created"'}
  reply: {toolCalls: [{name: wait_for_tasks, arguments: {tasks: ["{{ .Results.delegate_task.data.taskName }}"]}}]}
- name: answer
  match: {turn: 3, lastRole: tool, contains: '"completed":true'}
  reply: {text: "The hands said {{ (index .Results.wait_for_tasks.data.results 0).result }}"}
- name: run
  match: {turn: 1, lastRole: user, contains: Run it, offered: [code_exec]}
  reply: {toolCalls: [{name: code_exec, arguments: {language: bash, code: "echo it ran"}}]}
- name: was not run
  match: {turn: 2, lastRole: tool, contains: '"success":false'}
  reply: {text: "{{ .Results.code_exec.error }}"}
- name: was run
  match: {turn: 2, lastRole: tool, contains: '"success":true'}
  reply: {text: "{{ .Results.code_exec.data.output }}"}
`

// TestGatesHoldBelow: a call that needs an approval in a task needs one in what it delegates, although the agent that makes
// the call there needs none, and so does a fork of that. The approval is decided by the name of the root. The same agent needs none in a task of its own.
func TestGatesHoldBelow(t *testing.T) {
	t.Parallel()
	p, _ := standalone.WithModel(t, gatesScript)
	for name, s := range map[string]v1alpha1.AgentSpec{
		"careful": {Coordination: &v1alpha1.AgentCoordination{Enabled: true, AllowedAgents: []v1alpha1.NamespacedReference{{Name: "hands"}}, ApprovalRequiredTools: []string{"code_exec"}}},
		"hands":   {Tools: []v1alpha1.AgentTool{{Name: "code_exec"}}},
	} {
		s.ProviderRef = &v1alpha1.NamespacedReference{Name: "model"}
		kit.Must[*v1alpha1.Agent](t)(p.API().Agents("default").Create(t.Context(), &v1alpha1.Agent{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: s}, metav1.CreateOptions{}))
	}
	kit.Must[*v1alpha1.Task](t)(p.Tasks().Create(t.Context(), &v1alpha1.Task{ObjectMeta: metav1.ObjectMeta{Name: "boss"}, Spec: v1alpha1.TaskSpec{
		Type: v1alpha1.TaskTypeAI, Prompt: "Have it run.", AgentRef: &v1alpha1.NamespacedReference{Name: "careful"},
	}}, metav1.CreateOptions{}))
	kit.Await(t, "a child", func() bool { return len(p.Below("boss")) > 0 })
	child := p.Below("boss")[0].Name
	parked := p.AwaitTask(child, func(t *v1alpha1.Task) bool {
		return t.Status.Phase.Terminal() || meta.IsStatusConditionTrue(t.Status.Conditions, v1alpha1.ConditionWaitingForApproval)
	})
	if parked.Status.Phase.Terminal() {
		t.Fatalf("the child has ended without an approval: %s", p.ResultOf(child))
	}
	list := kit.Must[*v1alpha1.ApprovalList](t)(p.API().Approvals("default").List(t.Context(), metav1.ListOptions{FieldSelector: "spec.rootTask=boss"}))
	if len(list.Items) != 1 || list.Items[0].Spec.TargetTool != "code_exec" || list.Items[0].Spec.TaskName != child {
		t.Fatalf("%+v", list.Items)
	}
	if out, errs, code := standalone.Command(t.Context(), p.Kubeconfig, "task", "decline", "boss", "--reason", "at the root"); code != 0 || !strings.Contains(out, "task "+child+" asks to call code_exec") {
		t.Fatalf("decline at the root: exit code %d: %s%s", code, out, errs)
	}
	p.AwaitPhase("boss", v1alpha1.TaskSucceeded)
	if got := p.ResultOf("boss"); !strings.HasPrefix(got, "The hands said ") || !strings.Contains(got, "declined") || strings.Contains(got, "it ran") {
		t.Errorf("the boss says %q", got)
	}
	fork := kit.Must[*v1alpha1.TaskFork](t)(p.Tasks().Fork(t.Context(), child, &v1alpha1.TaskFork{Spec: v1alpha1.TaskForkSpec{NewTaskName: "again", Prompt: "Run it."}}, metav1.CreateOptions{}))
	again := p.AwaitTask(fork.Status.NewTaskName, func(t *v1alpha1.Task) bool {
		return t.Status.Phase.Terminal() || meta.IsStatusConditionTrue(t.Status.Conditions, v1alpha1.ConditionWaitingForApproval)
	})
	if again.Status.Phase.Terminal() || !slices.Equal(again.Status.ApprovalRequiredTools, []string{"code_exec"}) || again.Annotations[v1alpha1.AnnotationForkAgent] != "hands" {
		t.Fatalf("the fork of the child is %s, needs approvals for %v and is of agent %q", again.Status.Phase, again.Status.ApprovalRequiredTools, again.Annotations[v1alpha1.AnnotationForkAgent])
	}
	kit.Must[*v1alpha1.Task](t)(p.Tasks().Cancel(t.Context(), again.Name, &v1alpha1.TaskCancellation{}, metav1.CreateOptions{}))
	p.Give("alone", "hands", "Run it.", v1alpha1.TaskSucceeded)
	if got := p.ResultOf("alone"); got != "it ran\n" {
		t.Errorf("alone the agent says %q", got)
	}
}
