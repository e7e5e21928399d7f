// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package task

import (
	"fmt"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/platform-ai/platform/pkg/apis/core/v1alpha1"
	"github.com/platform-ai/platform/test/kit"
	"github.com/platform-ai/platform/test/kit/standalone"
)

// iterateScript does one step in each iteration. It reads the last step from the plan that its prompt begins with.
const iterateScript = `
models: [scripted-1]
turns:
- name: the plan is stored
  match: {lastRole: tool, contains: '"success":true'}
  reply: {text: A step is done., usage: {input: 10, output: 5}}
- name: third
  match: {turn: 1, contains: Step two is done., offered: [update_plan, request_approval]}
  reply: {toolCalls: [{name: update_plan, arguments: {summary: All done, plan_document: Step three is done., progress_pct: 100, goal_complete: true}}]}
- name: second
  match: {turn: 1, contains: Step one is done.}
  reply: {toolCalls: [{name: update_plan, arguments: {summary: Two done, plan_document: Step two is done.}}]}
- name: first
  match: {turn: 1, contains: Count to three.}
  reply: {toolCalls: [{name: update_plan, arguments: {summary: One done, plan_document: Step one is done., progress_pct: 33}}]}
- name: never ends
  match: {contains: Go on for ever.}
  reply: {text: Still going.}
`

// autonomous creates an autonomous agent of the task's name, and the task.
func autonomous(p *standalone.Platform, name, prompt string, most int32, change ...func(*v1alpha1.TaskSpec)) {
	p.T.Helper()
	agent := &v1alpha1.Agent{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: v1alpha1.AgentSpec{
		ProviderRef:  &v1alpha1.NamespacedReference{Name: "model"},
		Coordination: &v1alpha1.AgentCoordination{Enabled: true, Autonomous: true, MaxIterations: most},
	}}
	if _, err := p.API().Agents("default").Create(p.T.Context(), agent, metav1.CreateOptions{}); err != nil {
		p.T.Fatal(err)
	}
	p.Run(name, append([]func(*v1alpha1.TaskSpec){func(s *v1alpha1.TaskSpec) {
		s.Type, s.Command, s.Prompt, s.AgentRef = v1alpha1.TaskTypeAI, nil, prompt, &v1alpha1.NamespacedReference{Name: name}
	}}, change...)...)
}

// phases returns the changes of phase in a task's stream.
func phasesOf(p *standalone.Platform, task string) []string {
	p.T.Helper()
	var list []string
	for _, e := range p.EventsOf(task, v1alpha1.EventTaskPhaseChanged) {
		list = append(list, e.Summary)
	}
	return list
}

// TestIterations: each iteration is a run of its own that begins with the plan of the one before, until the goal is
// complete.
func TestIterations(t *testing.T) {
	t.Parallel()
	p, _ := standalone.WithModel(t, iterateScript)
	autonomous(p, "counter", "Count to three.", 0)
	task := p.AwaitPhase("counter", v1alpha1.TaskSucceeded)
	if task.Status.Message != "goal complete after 3 iterations" || task.Status.Iteration != 2 || task.Status.Attempts != 3 {
		t.Errorf("status: %+v", task.Status)
	}
	if c := meta.FindStatusCondition(task.Status.Conditions, v1alpha1.ConditionIterating); c == nil || c.Status != metav1.ConditionFalse {
		t.Errorf("conditions: %+v", task.Status.Conditions)
	}
	want := []string{"Pending → Running", "Running → Pending", "Pending → Running", "Running → Pending", "Pending → Running", "Running → Succeeded"}
	if got := phasesOf(p, "counter"); !slices.Equal(got, want) {
		t.Errorf("phases: %q", got)
	}
	var plans []string
	for _, e := range p.EventsOf("counter", v1alpha1.EventPlanUpdated) {
		plans = append(plans, e.ContentText)
	}
	if got := strings.Join(plans, " "); got != "Step one is done. Step two is done. Step three is done." {
		t.Errorf("plans: %s", got)
	}
	if n := len(p.EventsOf("counter", v1alpha1.EventWorkerStarted)); n != 3 {
		t.Errorf("%d workers", n)
	}
	k, err := p.Kubernetes(t).CoreV1().Events("default").List(t.Context(), metav1.ListOptions{FieldSelector: "reason=AutonomousIteration"})
	var told []string
	for _, e := range k.Items {
		told = append(told, e.Type+" "+e.Message)
	}
	slices.Sort(told)
	if err != nil || !slices.Equal(told, []string{"Normal iteration 0 was started", "Normal iteration 1 was started", "Normal iteration 2 was started"}) {
		t.Errorf("events: %q, %v", told, err)
	}
}

// TestIterationLimitAndSuspend: a suspended task stays Running without a run, goes on when it is told to, and ends at the
// limit of its agent.
func TestIterationLimitAndSuspend(t *testing.T) {
	kit.Needs(t, kit.Minutes)
	t.Parallel()
	p, _ := standalone.WithModel(t, iterateScript)
	autonomous(p, "runner", "Go on for ever.", 3, func(s *v1alpha1.TaskSpec) { s.Suspend = true })
	suspended := func(task *v1alpha1.Task) bool {
		c := meta.FindStatusCondition(task.Status.Conditions, v1alpha1.ConditionIterating)
		return c != nil && c.Reason == v1alpha1.ReasonSuspended
	}
	task, _ := p.Await("runner", suspended)
	if task.Status.Phase != v1alpha1.TaskRunning || task.Status.Iteration != 0 || task.Status.Attempts != 1 {
		t.Errorf("suspended: %+v", task.Status)
	}
	p.Restart(t) // it is still suspended, and nothing is started
	set := func(suspend bool) {
		t.Helper()
		if _, err := p.Tasks().Patch(t.Context(), "runner", types.MergePatchType, fmt.Appendf(nil, `{"spec":{"suspend":%t}}`, suspend), metav1.PatchOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	set(false)
	task = p.AwaitPhase("runner", v1alpha1.TaskSucceeded)
	if task.Status.Message != "reached max iterations (3)" || task.Status.Attempts != 3 || task.Status.Iteration != 2 {
		t.Errorf("status: %+v", task.Status)
	}

	autonomous(p, "cancelled", "Go on for ever.", 0, func(s *v1alpha1.TaskSpec) { s.Suspend = true })
	p.Await("cancelled", suspended)
	if _, err := p.Tasks().Cancel(t.Context(), "cancelled", &v1alpha1.TaskCancellation{}, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	p.AwaitPhase("cancelled", v1alpha1.TaskCancelled)
}

// TestIterationsSurvive: servers that stop and workers that are killed at any point neither repeat nor lose an iteration
// that was done.
func TestIterationsSurvive(t *testing.T) {
	kit.Needs(t, kit.Minutes)
	t.Parallel()
	const steps = 12
	var text strings.Builder
	text.WriteString("models: [scripted-1]\nturns:\n- {match: {lastRole: tool, contains: '\"success\":true'}, reply: {text: Done.}}\n")
	for i := steps; i > 0; i-- { // the newest step is looked for first
		fmt.Fprintf(&text, "- {match: {turn: 1, contains: 'Step %d is done.'}, reply: {toolCalls: [{name: update_plan, arguments: {summary: s, plan_document: 'Step %d is done.', goal_complete: %t}}]}}\n", i, i+1, i == steps-1)
	}
	text.WriteString("- {match: {turn: 1, contains: Count.}, reply: {toolCalls: [{name: update_plan, arguments: {summary: s, plan_document: 'Step 1 is done.'}}]}}\n")
	p, _ := standalone.WithModel(t, text.String(), standalone.OnAPort(t)) // living workers find the server again
	autonomous(p, "counter", "Count.", 0, func(s *v1alpha1.TaskSpec) {
		s.RetryPolicy = &v1alpha1.RetryPolicy{MaxRetries: 100, InitialDelay: v1alpha1.DurationOf(time.Millisecond)}
	})
	for i := int32(1); i < steps-1; i += 2 {
		task, _ := p.Await("counter", func(task *v1alpha1.Task) bool {
			return task.Status.Iteration >= i && meta.IsStatusConditionTrue(task.Status.Conditions, v1alpha1.ConditionJobCreated) || task.Status.Phase.Terminal()
		})
		if i%4 == 1 {
			p.Restart(t)
		} else if pid := p.WorkerOf(task); pid > 0 {
			_ = syscall.Kill(pid, syscall.SIGKILL)
		}
	}
	task := p.AwaitPhase("counter", v1alpha1.TaskSucceeded)
	if task.Status.Message != fmt.Sprintf("goal complete after %d iterations", task.Status.Iteration+1) || task.Status.Iteration < steps-3 || task.Status.Attempts < steps {
		t.Errorf("status: %+v", task.Status)
	}
	var plans []string
	for _, e := range p.EventsOf("counter", v1alpha1.EventPlanUpdated) {
		plans = append(plans, e.ContentText)
	}
	for i := range plans { // a killed worker's step is stored, and the next one continues after it
		if plans[i] != fmt.Sprintf("Step %d is done.", i+1) {
			t.Errorf("plans: %q", plans)
		}
	}
	if len(plans) != steps {
		t.Errorf("%d plans", len(plans))
	}
	started := map[string]int{}
	for _, e := range p.EventsOf("counter", v1alpha1.EventTaskStarted) {
		started[e.Summary]++
	}
	if len(started) != int(task.Status.Attempts) {
		t.Errorf("%d attempts, and %v", task.Status.Attempts, started)
	}
	for attempt, n := range started {
		if n != 1 {
			t.Errorf("%s: %d times", attempt, n)
		}
	}
}
