// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package task

import (
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/platform-ai/platform/pkg/apis/core/v1alpha1"
	"github.com/platform-ai/platform/test/kit"
	"github.com/platform-ai/platform/test/kit/standalone"
)

// madeScript: a chief tries to create an agent with a tool that it lacks, creates a poet and a painter, delegates to the
// poet, and deletes it. It tries to delete an agent of a person, too.
const madeScript = `
models: [scripted-1]
turns:
- name: create too much
  match: {turn: 1, lastRole: user, contains: Find a poet, offered: [create_agent, delete_agent]}
  reply: {toolCalls: [{name: create_agent, arguments: {name: poet, provider: model, model: scripted-1, systemPrompt: "You are a poet.", tools: [code_exec]}}]}
- name: create
  match: {turn: 2, lastRole: tool, contains: 'the task itself does not have the tool'}
  reply: {toolCalls: [{name: create_agent, arguments: {name: painter, provider: model, model: scripted-1, systemPrompt: "You paint."}},
    {name: create_agent, arguments: {name: poet, provider: model, model: scripted-1, systemPrompt: "You are a poet.", soul: "You are sad."}}]}
- name: delegate
  match: {turn: 3, lastRole: tool, contains: '"agentName":"poet","namespace":"default","status":"created"'}
  reply: {toolCalls: [{name: delegate_task, arguments: {agent: poet, prompt: "Write a line."}}]}
- name: the poet
  match: {turn: 1, lastRole: user, contains: Write a line}
  reply: {text: Roses are red.}
- name: wait
  match: {turn: 4, lastRole: tool, contains: '"status":"created"'}
  reply: {toolCalls: [{name: wait_for_tasks, arguments: {tasks: ["{{ .Results.delegate_task.data.taskName }}"]}}]}
- name: delete
  match: {turn: 5, lastRole: tool, contains: 'Roses are red.'}
  reply: {toolCalls: [{name: delete_agent, arguments: {name: poet}}]}
- name: delete another's
  match: {turn: 6, lastRole: tool, contains: '"status":"deleted"'}
  reply: {toolCalls: [{name: delete_agent, arguments: {name: clerk}}]}
- name: answer
  match: {turn: 7, lastRole: tool, contains: 'only agents that its own task created'}
  reply: {text: "{{ (index .Results.wait_for_tasks.data.results 0).result }}"}
`

// TestAgentsOfATree: a coordinator creates an agent, delegates to it although its own list of agents lacks it, and deletes
// it. An agent that it leaves goes with the task.
func TestAgentsOfATree(t *testing.T) {
	kit.Needs(t, kit.Minutes)
	t.Parallel()
	p, _ := standalone.WithModel(t, madeScript)
	p.Team()
	p.Give("boss", "chief", "Find a poet.", v1alpha1.TaskSucceeded)
	if got := p.ResultOf("boss"); got != "Roses are red." {
		t.Errorf("the result is %q", got)
	}
	agents := p.API().Agents("default")
	for name, left := range map[string]bool{"poet": false, "painter": true, "clerk": true} {
		if _, err := agents.Get(t.Context(), name, metav1.GetOptions{}); left && err != nil || !left && !apierrors.IsNotFound(err) {
			t.Errorf("agent %s: %v", name, err)
		}
	}
	painter := kit.Must[*v1alpha1.Agent](t)(agents.Get(t.Context(), "painter", metav1.GetOptions{}))
	w := kit.Must[watch.Interface](t)(agents.Watch(t.Context(), metav1.ListOptions{FieldSelector: "metadata.name=painter", ResourceVersion: painter.ResourceVersion}))
	defer w.Stop()
	if err := p.Tasks().Delete(t.Context(), "boss", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	for e := range w.ResultChan() {
		if e.Type == watch.Deleted {
			return
		}
	}
	t.Error("the agent outlived its task")
}
