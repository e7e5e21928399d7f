// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package robustness

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/platform-ai/platform/pkg/apis/core/v1alpha1"
	"github.com/platform-ai/platform/pkg/cli"
	"github.com/platform-ai/platform/pkg/event"
	"github.com/platform-ai/platform/test/scriptedmodel/script"
)

// sceneScript: a chief works in iterations. In the first it delegates to lead-a, in the second to lead-b, in the third it
// is done. A lead delegates to two foremen and two clerks, of whom one fails (lead-a) or is cancelled (lead-b). A foreman
// delegates to two clerks, and one of the foremen to a clerk who may run commands only when a person agrees. What has
// failed is delegated again, however it failed.
const sceneScript = `
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
    - {name: create_container_task, arguments: {command: [sleep, "600"]}}
- name: lead-b cancels the command
  match: {system: You are lead-b., turn: 2, lastRole: tool}
  reply: {toolCalls: [{name: cancel_task, arguments: {task_name: "{{ .Results.create_container_task.data.name }}", reason: not needed}}]}
- name: lead-b waits
  match: {system: You are lead-b., turn: 3, lastRole: tool}
  reply: {toolCalls: [{name: wait_for_tasks, arguments: {tasks: [FIRST, SECOND, THIRD]}}]}
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
# Everybody who delegates.
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

// scene returns the script with the names of what was delegated, and its agents.
func scene() (string, []v1alpha1.Agent) {
	text := sceneScript
	for i, word := range []string{"FIRST", "SECOND", "THIRD", "FOURTH"} {
		text = strings.ReplaceAll(text, word, fmt.Sprintf(`"{{ (index .All.delegate_task %d).data.taskName }}"`, i))
	}
	agent := func(name, system string, c *v1alpha1.AgentCoordination, tools ...v1alpha1.AgentTool) v1alpha1.Agent {
		return v1alpha1.Agent{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: v1alpha1.AgentSpec{SystemPrompt: &v1alpha1.AgentSystemPrompt{Inline: system}, Coordination: c, Tools: tools}}
	}
	commands := v1alpha1.AgentTool{Name: "code_exec"}
	delegates := &v1alpha1.AgentCoordination{Enabled: true}
	return text, []v1alpha1.Agent{
		agent("chief", "You are the chief.", &v1alpha1.AgentCoordination{Enabled: true, Autonomous: true}),
		agent("lead-a", "You are lead-a.", delegates), agent("lead-b", "You are lead-b.", delegates), agent("foreman", "You are a foreman.", delegates),
		agent("clerk", "You are a clerk.", nil, commands),
		agent("keeper", "You are a keeper.", &v1alpha1.AgentCoordination{ApprovalRequiredTools: []string{"code_exec"}}, commands),
	}
}

var (
	errBrokeTree     = errors.New("broke Tree - each call that delegates makes one child, and each child was made by one call")
	errBrokeTimeline = errors.New("broke Timeline - a watch of the tree prints each event once, in the order of the store")
)

// sceneKills is how often something is killed at least; ROUNDS raises it.
const sceneKills = 20

// TestCoordinationUnderKills plays a scene of four levels while the server and workers are killed at random moments: three
// iterations, more than 20 delegated tasks, of which one fails and is delegated again and one is cancelled, and two approvals
// at the lowest level, decided by whoever watches the root. Siblings write to each other.
func TestCoordinationUnderKills(t *testing.T) {
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	random := rand.New(rand.NewPCG(seed, 0))
	text, agents := scene()
	p := newTeam(t, text, agents...)
	kills := max(sceneKills, rounds(t))
	ctx, cancel := context.WithTimeout(t.Context(), time.Duration(kills)*10*time.Second+5*time.Minute)
	defer cancel()
	_, err := p.api.Tasks("default").Create(ctx, &v1alpha1.Task{ObjectMeta: metav1.ObjectMeta{Name: "root"}, Spec: v1alpha1.TaskSpec{
		Type: v1alpha1.TaskTypeAI, Prompt: "Build it.", AgentRef: &v1alpha1.NamespacedReference{Name: "chief"},
		RetryPolicy: &v1alpha1.RetryPolicy{MaxRetries: 100, InitialDelay: &metav1.Duration{Duration: time.Millisecond}},
	}}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	var printed, complaints bytes.Buffer
	watched := make(chan int, 1)
	go func() {
		args := []string{"--kubeconfig", p.Kubeconfig, "task", "watch", "root", "--tree", "-o", "json"}
		watched <- cli.Main(ctx, "platform", args, cli.Streams{In: strings.NewReader(""), Out: &printed, Err: &complaints})
	}()
	ended := make(chan error, 1)
	go func() { ended <- p.decideAll(ctx) }()

	done := 0
	for over := false; done < kills && !over; done++ {
		pause(ctx, time.Duration(random.Int64N(int64(1500*time.Millisecond))))
		if random.IntN(2) == 0 {
			killWorker(p.DataDir, random)
		} else {
			if random.IntN(3) == 0 {
				_ = p.Stop() // as an operator does; its exit says how
			} else {
				p.Kill()
			}
			if random.IntN(4) == 0 {
				killWorker(p.DataDir, random) // unseen
			}
			p.Restart(t)
		}
		select {
		case err := <-ended:
			ended <- err
			over = true
		default:
		}
	}
	t.Logf("%d kills", done)
	if err := <-ended; err != nil {
		t.Fatalf("%v\n%s", err, p.MustShell(t, "platform task tree root"))
	}
	if code := <-watched; code != 0 {
		t.Errorf("the watch ended with %d: %s", code, complaints.String())
	}
	if err := p.checkScene(ctx, t, &printed); err != nil {
		t.Errorf("%v\n%s", err, p.MustShell(t, "platform task tree root"))
	}
}

// decideAll approves whatever waits in the tree of the root, until the root has ended.
func (p *team) decideAll(ctx context.Context) error {
	for {
		var root v1alpha1.Task
		if err := p.raw.insist(ctx, http.MethodGet, base+"tasks/root", nil, &root); err != nil {
			return err
		}
		if root.Status.Phase.Terminal() {
			return nil
		}
		var list v1alpha1.ApprovalList
		if err := p.raw.insist(ctx, http.MethodGet, base+"approvals?fieldSelector=spec.rootTask%3Droot,status.state%3Dpending", nil, &list); err != nil {
			return err
		}
		for i := range list.Items {
			const yes = `{"apiVersion":"core.platform.ai/v1alpha1","kind":"ApprovalDecision","spec":{"decision":"approve"}}`
			// The task may have ended meanwhile, and the decision may have been made before its answer was lost.
			_ = p.raw.do(ctx, http.MethodPost, base+"approvals/"+list.Items[i].Name+"/decision", []byte(yes), nil)
		}
		pause(ctx, 100*time.Millisecond)
		if ctx.Err() != nil {
			return fmt.Errorf("%w: the root is %s", errBrokeEnds, root.Status.Phase)
		}
	}
}

// checkScene checks what came of the scene.
func (p *team) checkScene(ctx context.Context, t *testing.T, printed io.Reader) error {
	t.Helper()
	events, err := p.api.ExecutionEvents("default").List(ctx, metav1.ListOptions{FieldSelector: "rootTask=root"})
	if err != nil {
		return err
	}
	tasks, err := p.api.Tasks("default").List(ctx, metav1.ListOptions{})
	if err != nil {
		return err
	}
	var broken []error
	counts := map[v1alpha1.TaskPhase]int{}
	children := map[string]string{} // the parents of the delegated tasks
	for i := range tasks.Items {
		x := &tasks.Items[i]
		counts[x.Status.Phase]++
		if d := x.Status.Delegation; d != nil {
			children[x.Name] = d.Parent
		}
		if !x.Status.Phase.Terminal() || x.Status.Phase == v1alpha1.TaskFailed && x.Status.Message == "" {
			broken = append(broken, fmt.Errorf("%w: %s is %s", errBrokeEnds, x.Name, x.Status.Phase))
		}
		broken = append(broken, checkEvents(ctx, p.raw, x), checkRest(x))
	}
	t.Logf("%d delegated tasks: %v", len(children), counts)
	root, err := p.api.Tasks("default").Get(ctx, "root", metav1.GetOptions{})
	if err != nil {
		return err
	}
	if root.Status.Phase != v1alpha1.TaskSucceeded || !strings.HasPrefix(root.Status.Message, "goal complete after ") ||
		len(children) < 16 || counts[v1alpha1.TaskFailed] == 0 || counts[v1alpha1.TaskCancelled] == 0 {
		broken = append(broken, fmt.Errorf("%w: the root is %s (%s)", errBrokeTrue, root.Status.Phase, root.Status.Message))
	}
	return errors.Join(append(broken,
		checkSteps(events.Items), checkMessages(p.model.Exchanges()), checkDelegations(events.Items, children), checkPrinted(events.Items, printed),
	)...)
}

// checkSteps checks the plan, and that both keepers were let through.
func checkSteps(events []v1alpha1.ExecutionEvent) error {
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
		return fmt.Errorf("%w: the plan was %q, %d approvals were given", errBrokeTrue, got, approved)
	}
	return nil
}

// checkMessages checks that some clerk read what another one wrote.
func checkMessages(exchanges []script.Exchange) error {
	for _, e := range exchanges {
		if m := e.Request.Messages; e.Turn == "done" && strings.Contains(m[len(m)-1].Text(), "I am at work.") {
			return nil
		}
	}
	return fmt.Errorf("%w: no message was read", errBrokeTree)
}

// checkDelegations compares the calls that delegated with the tasks that there are. A call whose worker was killed may have
// made a child and have no end.
func checkDelegations(events []v1alpha1.ExecutionEvent, children map[string]string) error {
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
			return fmt.Errorf("%w: %s has %d children of %d calls, of which %d were completed", errBrokeTree, parent, made[parent], n, ended[parent])
		}
	}
	for child := range children {
		if created[child] != 1 {
			return fmt.Errorf("%w: %d events say that %s was created", errBrokeTree, created[child], child)
		}
	}
	return nil
}

// checkPrinted compares what the watch printed with what is stored.
func checkPrinted(events []v1alpha1.ExecutionEvent, printed io.Reader) error {
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
		return fmt.Errorf("%w: %d events are stored, %d were printed", errBrokeTimeline, len(want), len(got))
	}
	return nil
}
