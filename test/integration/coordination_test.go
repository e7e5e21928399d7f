// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package integration

import (
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/platform-ai/platform/pkg/apis/core/v1alpha1"
)

// delegateScript: a chief delegates to a clerk, waits and answers with what the clerk said. Every word in the prompt is
// one way to delegate.
const delegateScript = `
models: [scripted-1]
turns:
- name: delegate
  match: {turn: 1, lastRole: user, contains: Ask the clerk, offered: [delegate_task, wait_for_tasks, create_container_task, cancel_task]}
  reply: {toolCalls: [{name: delegate_task, arguments: {agent: clerk, prompt: "Say the word.", timeout: 20m}}]}
- name: delegate to a stranger
  match: {turn: 1, lastRole: user, contains: Ask a stranger}
  reply: {toolCalls: [{name: delegate_task, arguments: {agent: stranger, prompt: "Say the word."}}]}
- name: delegate elsewhere
  match: {turn: 1, lastRole: user, contains: Ask elsewhere}
  reply: {toolCalls: [{name: delegate_task, arguments: {agent: clerk, prompt: "Say the word.", taskNamespace: other}}]}
- name: ask itself
  match: {turn: 1, lastRole: user, contains: Ask yourself}
  reply: {toolCalls: [{name: delegate_task, arguments: {agent: chief, prompt: "  Ask\n yourself. "}}]}
- name: the clerk
  match: {turn: 1, lastRole: user, contains: Say the word}
  reply: {text: heliotrope}
- name: wait
  match: {turn: 2, lastRole: tool, contains: '"status":"created"'}
  reply: {toolCalls: [{name: wait_for_tasks, arguments: {tasks: ["{{ .Results.delegate_task.data.taskName }}"]}}]}
- name: answer
  match: {turn: 3, lastRole: tool, contains: '"completed":true'}
  reply: {text: "The clerk said {{ (index .Results.wait_for_tasks.data.results 0).result }}."}
- name: refused
  match: {turn: 2, lastRole: tool, contains: '"success":false'}
  reply: {text: "{{ .Results.delegate_task.errorType }}: {{ .Results.delegate_task.error }}"}
`

// team makes the agents of delegateScript.
func (p *platform) team() {
	p.t.Helper()
	for name, c := range map[string]*v1alpha1.AgentCoordination{
		"chief": {Enabled: true, AllowedAgents: []v1alpha1.NamespacedReference{{Name: "clerk"}, {Name: "chief"}}}, "clerk": nil, "stranger": nil,
	} {
		a := &v1alpha1.Agent{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: v1alpha1.AgentSpec{ProviderRef: &v1alpha1.NamespacedReference{Name: "model"}, Coordination: c}}
		if _, err := p.client().CoreV1alpha1().Agents("default").Create(p.t.Context(), a, metav1.CreateOptions{}); err != nil {
			p.t.Fatal(err)
		}
	}
}

// give creates a task of an agent and waits for its end.
func (p *platform) give(name, agent, prompt string, want v1alpha1.TaskPhase) *v1alpha1.Task {
	p.t.Helper()
	task := &v1alpha1.Task{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: v1alpha1.TaskSpec{
		Type: v1alpha1.TaskTypeAI, Prompt: prompt, AgentRef: &v1alpha1.NamespacedReference{Name: agent},
		Timeout: &metav1.Duration{Duration: 3600e9},
	}}
	if _, err := p.tasks().Create(p.t.Context(), task, metav1.CreateOptions{}); err != nil {
		p.t.Fatal(err)
	}
	return p.awaitPhase(name, want)
}

func (p *platform) resultOf(name string) string {
	p.t.Helper()
	var r v1alpha1.TaskResult
	if err := p.client().CoreV1alpha1().RESTClient().Get().Namespace("default").Resource("tasks").Name(name).SubResource("result").Do(p.t.Context()).Into(&r); err != nil {
		p.t.Fatal(err)
	}
	return r.Result
}

// TestDelegation: a coordinator delegates, waits, and reads the result; the server sets everything that says whose
// child a task is. What it may not delegate is refused with the reason, which the model reads.
func TestDelegation(t *testing.T) {
	t.Parallel()
	p, _ := withModel(t, delegateScript)
	p.team()
	chief := p.give("boss", "chief", "Ask the clerk.", v1alpha1.TaskSucceeded)
	if got := p.resultOf("boss"); got != "The clerk said heliotrope." {
		t.Errorf("the result is %q", got)
	}
	list := must[*v1alpha1.TaskList](t)(p.tasks().List(t.Context(), metav1.ListOptions{LabelSelector: v1alpha1.LabelParentTask + "=boss"}))
	if len(list.Items) != 1 {
		t.Fatalf("%d children", len(list.Items))
	}
	c := &list.Items[0]
	d := c.Status.Delegation
	if !strings.HasPrefix(c.Name, "boss-child-") || !metav1.IsControlledBy(c, chief) || c.Labels[v1alpha1.LabelCoordinator] != "chief" ||
		c.Labels[v1alpha1.LabelDelegatedAgent] != "clerk" || c.Labels[v1alpha1.LabelCreatedBy] != "boss" ||
		c.Annotations[v1alpha1.AnnotationCoordinationDepth] != "1" || c.Annotations[v1alpha1.AnnotationRequestedBy] != chief.Annotations[v1alpha1.AnnotationRequestedBy] {
		t.Errorf("the child is %+v", c.ObjectMeta)
	}
	if d == nil || d.ParentUID != chief.UID || d.RootUID != chief.UID || d.Root != "boss" || d.Depth != 1 || d.Deadline == nil || !chief.Status.HasChildren {
		t.Errorf("the child's place is %+v", d)
	}
	for prompt, want := range map[string]string{
		"Ask a stranger.": `permission_denied: agent "default/stranger" is not among those that agent "chief" may delegate to`,
		"Ask elsewhere.":  "invalid_arguments: taskNamespace: a child lives in the namespace of its parent, default",
		"Ask yourself.":   "permission_denied: a task above this one was asked exactly the same",
	} {
		name := strings.ToLower(strings.Fields(prompt)[len(strings.Fields(prompt))-1])
		name = strings.TrimSuffix(name, ".")
		p.give(name, "chief", prompt, v1alpha1.TaskSucceeded)
		if got := p.resultOf(name); !strings.HasPrefix(got, want) {
			t.Errorf("%s: %s, want %s", prompt, got, want)
		}
	}
}
