// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package task

import (
	"testing"

	"github.com/platform-ai/platform/pkg/apis/core/v1alpha1"
	"github.com/platform-ai/platform/test/kit"
	"github.com/platform-ai/platform/test/kit/standalone"
)

// retryScript: a chief delegates the same twice, because the clerk's model refuses, and then waits for both.
const retryScript = `
models: [scripted-1]
turns:
- name: delegate
  match: {turn: 1, lastRole: user, contains: Ask the clerk}
  reply: {toolCalls: [{name: delegate_task, arguments: {agent: clerk, prompt: "Fail.", auto_retry: true}}]}
- name: the clerk
  match: {turn: 1, lastRole: user, contains: Fail}
  fault: {status: 400, code: invalid_request_error, message: No}
- name: wait
  match: {turn: 2, lastRole: tool}
  reply: {toolCalls: [{name: wait_for_tasks, arguments: {tasks: ["{{ .Results.delegate_task.data.taskName }}"]}}]}
- name: again
  match: {turn: 3, lastRole: tool}
  reply: {toolCalls: [{name: delegate_task, arguments: {agent: clerk, prompt: "Fail.", auto_retry: true}}]}
- name: wait again
  match: {turn: 4, lastRole: tool}
  reply: {toolCalls: [{name: wait_for_tasks, arguments: {tasks: ["{{ .Results.delegate_task.data.taskName }}", "{{ (index .Results.wait_for_tasks.data.results 0).task }}"]}}]}
- name: answer
  match: {turn: 5, lastRole: tool}
  reply: {text: "{{ range .Results.wait_for_tasks.data.results }}{{ .failureDetails.retryCount }} of {{ .failureDetails.maxRetries }} {{ with index . \"retryTaskName\" }}{{ eq . $.Results.delegate_task.data.taskName }}{{ end }};{{ end }}"}
`

// TestRetriesAreCounted: a child that repeats a failed one has the next number, and the row of the failed one names it.
func TestRetriesAreCounted(t *testing.T) {
	kit.Needs(t, kit.Minutes)
	t.Parallel()
	p, _ := standalone.WithModel(t, retryScript)
	p.Team()
	p.Give("boss", "chief", "Ask the clerk.", v1alpha1.TaskSucceeded)
	if got := p.ResultOf("boss"); got != "0 of 2 true;1 of 2 ;" && got != "1 of 2 ;0 of 2 true;" {
		t.Errorf("the rows are %q", got)
	}
}
