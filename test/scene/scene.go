// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

// Package scene is a scene of coordination that tests play on a server while parts of it are killed: a chief works in three
// iterations, and 20 tasks are delegated on three levels below it. The package has the script of the model, the agents and
// the checks of what came of it.
package scene

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/platform-ai/platform/pkg/apis/core/v1alpha1"
	"github.com/platform-ai/platform/pkg/event"
	"github.com/platform-ai/platform/test/scriptedmodel/script"
)

// text: a chief works in iterations. In the first it delegates to lead-a, in the second to lead-b, in the third it
// is done. A lead delegates to two foremen and two clerks, of whom one fails (lead-a) or is cancelled (lead-b). A foreman
// delegates to two clerks, and one of the foremen to a clerk who may run commands only when a person agrees. What has
// failed is delegated again, however it failed.
const text = `
models: [scripted-1]
turns:
# The chief.
- name: lead-a has failed
  match: {system: You are the chief., lastRole: tool, regexp: '"agent":"lead-a","phase":"(Failed|Cancelled)'}
  reply: {toolCalls: [{name: delegate_task, arguments: {agent: lead-a, prompt: Build A.}}]}
- name: lead-b has failed
  match: {system: You are the chief., lastRole: tool, regexp: '"agent":"lead-b","phase":"(Failed|Cancelled)'}
  reply: {toolCalls: [{name: delegate_task, arguments: {agent: lead-b, prompt: Build B.}}]}
- name: A is built
  match: {system: You are the chief., lastRole: tool, contains: A is built.}
  reply: {toolCalls: [{name: update_plan, arguments: {summary: A, plan_document: Step one is done., progress_pct: 33}}]}
- name: B is built
  match: {system: You are the chief., lastRole: tool, contains: B is built.}
  reply: {toolCalls: [{name: update_plan, arguments: {summary: B, plan_document: Step two is done., progress_pct: 66}}]}
- name: third iteration
  match: {system: You are the chief., turn: 1, contains: Step two is done.}
  reply: {toolCalls: [{name: update_plan, arguments: {summary: All, plan_document: Step three is done., progress_pct: 100, goal_complete: true}}]}
- name: second iteration
  match: {system: You are the chief., turn: 1, contains: Step one is done.}
  reply: {toolCalls: [{name: delegate_task, arguments: {agent: lead-b, prompt: Build B.}}]}
- name: first iteration
  match: {system: You are the chief., turn: 1, contains: Build it.}
  reply: {toolCalls: [{name: delegate_task, arguments: {agent: lead-a, prompt: Build A.}}]}
# Leads and foremen.
- name: lead-a begins
  match: {turn: 1, contains: Build A.}
  reply:
    toolCalls:
    - {name: delegate_task, arguments: {agent: foreman, prompt: Oversee the gate.}}
    - {name: delegate_task, arguments: {agent: foreman, prompt: Oversee.}}
    - {name: delegate_task, arguments: {agent: clerk, prompt: Work.}}
    - {name: delegate_task, arguments: {agent: clerk, prompt: Fail., auto_retry: true}}
- name: lead-b begins
  match: {turn: 1, contains: Build B.}
  reply:
    toolCalls:
    - {name: delegate_task, arguments: {agent: foreman, prompt: Oversee.}}
    - {name: delegate_task, arguments: {agent: foreman, prompt: Oversee the gate.}}
    - {name: delegate_task, arguments: {agent: clerk, prompt: Work.}}
    - {name: delegate_task, arguments: {agent: clerk, prompt: Work.}}
    - {name: create_container_task, arguments: {command: [sleep, "600"], image: "IMAGE"}}
- name: lead-b cancels the command
  match: {system: You are lead-b., turn: 2, lastRole: tool}
  reply: {toolCalls: [{name: cancel_task, arguments: {task_name: "{{ .Results.create_container_task.data.name }}", reason: not needed}}]}
- name: lead-b waits
  match: {system: You are lead-b., turn: 3, lastRole: tool}
  reply: {toolCalls: [{name: wait_for_tasks, arguments: {tasks: [FIRST, SECOND, THIRD, FOURTH]}}]}
- name: lead-a waits
  match: {system: You are lead-a., turn: 2, lastRole: tool}
  reply: {toolCalls: [{name: wait_for_tasks, arguments: {tasks: [FIRST, SECOND, THIRD, FOURTH]}}]}
- name: a foreman begins at the gate
  match: {turn: 1, contains: Oversee the gate.}
  reply: {toolCalls: [{name: delegate_task, arguments: {agent: clerk, prompt: Work.}}, {name: delegate_task, arguments: {agent: keeper, prompt: Work.}}]}
- name: a foreman begins
  match: {turn: 1, contains: Oversee.}
  reply: {toolCalls: [{name: delegate_task, arguments: {agent: clerk, prompt: Work.}}, {name: delegate_task, arguments: {agent: clerk, prompt: Work.}}]}
- name: a foreman waits
  match: {system: You are a foreman., turn: 2, lastRole: tool}
  reply: {toolCalls: [{name: wait_for_tasks, arguments: {tasks: [FIRST, SECOND]}}]}
# Everybody who delegates. What leads to an approval is asked for as it was, since both approvals must be given.
- name: a foreman has failed
  match: {lastRole: tool, regexp: '"agent":"foreman","phase":"(Failed|Cancelled)'}
  reply: {toolCalls: [{name: delegate_task, arguments: {agent: foreman, prompt: Oversee the gate.}}]}
- name: a keeper has failed
  match: {lastRole: tool, regexp: '"agent":"keeper","phase":"(Failed|Cancelled)'}
  reply: {toolCalls: [{name: delegate_task, arguments: {agent: keeper, prompt: Work.}}]}
- name: it has failed
  match: {lastRole: tool, regexp: '"phase":"(Failed|Cancelled)'}
  reply: {toolCalls: [{name: delegate_task, arguments: {agent: clerk, prompt: Work again.}}]}
- name: wait for the last
  match: {lastRole: tool, contains: '"status":"created"'}
  reply: {toolCalls: [{name: wait_for_tasks, arguments: {tasks: ["{{ .Results.delegate_task.data.taskName }}"]}}]}
- name: lead-a has built
  match: {system: You are lead-a., lastRole: tool, contains: '"completed":true'}
  reply: {text: A is built.}
- name: lead-b has built
  match: {system: You are lead-b., lastRole: tool, contains: '"completed":true'}
  reply: {text: B is built.}
- name: a foreman has overseen
  match: {lastRole: tool, contains: '"completed":true'}
  reply: {text: It is overseen.}
# Clerks.
- name: a clerk fails
  match: {turn: 1, contains: Fail.}
  fault: {status: 400, message: I cannot}
- name: a clerk works
  match: {turn: 1, contains: Work}
  reply:
    toolCalls:
    - {name: send_message, arguments: {to_task: "*", content: I am at work.}}
    - {name: code_exec, arguments: {language: bash, code: sleep 0.3; echo worked}}
- name: a clerk reads
  match: {turn: 2, lastRole: tool, contains: worked}
  reply: {toolCalls: [{name: check_messages}]}
- name: done
  match: {lastRole: tool, contains: '"success":true'}
  reply: {text: Done.}
- name: went wrong
  match: {lastRole: tool}
  reply: {text: It went wrong.}
`

// The scene, if no worker is killed.
const (
	// Delegated is how many tasks are delegated. One of them fails, and its work is delegated again, and one is cancelled.
	Delegated = 20
	// Approvals is how many calls wait for a person, each of a task at the lowest level.
	Approvals = 2
	// Iterations is how many iterations the root has.
	Iterations = 3
	// Prompt is what the chief is asked.
	Prompt = "Build it."
)

// Script returns the script of the model. Commands run in an image; empty if they are commands of the host.
func Script(image string) string {
	out := strings.ReplaceAll(text, "IMAGE", image)
	for i, word := range []string{"FIRST", "SECOND", "THIRD", "FOURTH"} {
		out = strings.ReplaceAll(out, word, fmt.Sprintf(`"{{ (index .All.delegate_task %d).data.taskName }}"`, i))
	}
	return out
}

// Slow returns the script with clerks that take seconds, so that there is always somebody at work.
func Slow(image string) string { return strings.ReplaceAll(Script(image), "sleep 0.3", "sleep 2") }

// Chief is the agent of the root.
const Chief = "chief"

// Agents returns the agents, which have no Provider yet.
func Agents() []v1alpha1.Agent {
	agent := func(name, system string, c *v1alpha1.AgentCoordination, tools ...v1alpha1.AgentTool) v1alpha1.Agent {
		return v1alpha1.Agent{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: v1alpha1.AgentSpec{SystemPrompt: &v1alpha1.AgentSystemPrompt{Inline: system}, Coordination: c, Tools: tools}}
	}
	commands := v1alpha1.AgentTool{Name: "code_exec"}
	all := []v1alpha1.NamespacedReference{{Name: v1alpha1.AnyAgent}}
	delegates := &v1alpha1.AgentCoordination{Enabled: true, AllowedAgents: all}
	return []v1alpha1.Agent{
		agent(Chief, "You are the chief.", &v1alpha1.AgentCoordination{Enabled: true, Autonomous: true, AllowedAgents: all}),
		agent("lead-a", "You are lead-a.", delegates), agent("lead-b", "You are lead-b.", delegates), agent("foreman", "You are a foreman.", delegates),
		agent("clerk", "You are a clerk.", nil, commands),
		agent("keeper", "You are a keeper.", &v1alpha1.AgentCoordination{ApprovalRequiredTools: []string{"code_exec"}}, commands),
	}
}

// What the checks return.
var (
	ErrBrokePlan     = errors.New("broke Plan - each step of the plan was stored in its order, and both calls were approved")
	ErrBrokeTree     = errors.New("broke Tree - each call that delegates makes one child, and each child was made by one call")
	ErrBrokeTimeline = errors.New("broke Timeline - a watch of the tree prints each event once, in the order of the store")
)

// CheckPlan checks the plan, and that both keepers were let through.
func CheckPlan(events []v1alpha1.ExecutionEvent) error {
	var steps []string
	approved := 0
	for i := range events {
		switch e := &events[i]; e.Type {
		case v1alpha1.EventPlanUpdated:
			steps = append(steps, e.ContentText)
		case v1alpha1.EventApprovalApproved:
			approved++
		}
	}
	if got := strings.Join(slices.Compact(steps), " "); got != "Step one is done. Step two is done. Step three is done." || approved < 2 {
		return fmt.Errorf("%w: the plan was %q, %d approvals were given", ErrBrokePlan, got, approved)
	}
	return nil
}

// CheckMessages checks that some clerk read what another one wrote.
func CheckMessages(exchanges []script.Exchange) error {
	for _, e := range exchanges {
		if m := e.Request.Messages; e.Turn == "done" && strings.Contains(m[len(m)-1].Text(), "I am at work.") {
			return nil
		}
	}
	return fmt.Errorf("%w: no message was read", ErrBrokeTree)
}

// CheckDelegations compares the calls that delegated with the tasks that there are. A call whose worker was killed may have
// made a child and have no end.
func CheckDelegations(events []v1alpha1.ExecutionEvent, children map[string]string) error {
	made, begun, ended, created := map[string]int{}, map[string]int{}, map[string]int{}, map[string]int{}
	for _, parent := range children {
		made[parent]++
	}
	for i := range events {
		e := &events[i]
		delegates := e.ToolName == "delegate_task" || e.ToolName == "create_container_task"
		switch {
		case delegates && e.Type == v1alpha1.EventToolCallStarted:
			begun[e.TaskName]++
		case delegates && e.Type == v1alpha1.EventToolCallCompleted:
			ended[e.TaskName]++
		case e.Type == v1alpha1.EventTaskCreated:
			created[e.TaskName]++
		}
	}
	for parent, n := range begun {
		if made[parent] > n || made[parent] < ended[parent] {
			return fmt.Errorf("%w: %s has %d children of %d calls, of which %d were completed", ErrBrokeTree, parent, made[parent], n, ended[parent])
		}
	}
	for child := range children {
		if created[child] != 1 {
			return fmt.Errorf("%w: %d events say that %s was created", ErrBrokeTree, created[child], child)
		}
	}
	return nil
}

// CheckPrinted compares what the watch printed with what is stored.
func CheckPrinted(events []v1alpha1.ExecutionEvent, printed io.Reader) error {
	var want, got []string
	for i := range events {
		want = append(want, events[i].Name)
	}
	for in := json.NewDecoder(printed); ; {
		var e v1alpha1.ExecutionEvent
		if err := in.Decode(&e); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			return err
		}
		got = append(got, e.Name)
	}
	for len(want) > len(got) && event.Late(events[len(want)-1].Type) {
		want = want[:len(want)-1]
	}
	if !slices.Equal(want, got) {
		return fmt.Errorf("%w: %d events are stored, %d were printed", ErrBrokeTimeline, len(want), len(got))
	}
	return nil
}
