// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package event

import (
	"encoding/json"
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/platform-ai/platform/pkg/apis/core/v1alpha1"
	"github.com/platform-ai/platform/test/kit"
	"github.com/platform-ai/platform/test/kit/standalone"
)

const usageScript = `
models: [scripted-1]
turns:
- name: delegate
  match: {turn: 1, lastRole: user, contains: Ask the clerk}
  reply: {toolCalls: [{name: delegate_task, arguments: {agent: clerk, prompt: "Stumble."}}], usage: {input: 101, output: 11}}
- name: the clerk stumbles
  times: 1
  match: {turn: 1, lastRole: user, contains: Stumble}
  fault: {status: 500, message: Later}
- name: the clerk
  match: {turn: 1, lastRole: user, contains: Stumble}
  reply: {text: Heliotrope., usage: {input: 102, output: 12, cached: 50}}
- name: wait
  match: {turn: 2, lastRole: tool}
  reply: {toolCalls: [{name: wait_for_tasks, arguments: {tasks: ["{{ .Results.delegate_task.data.taskName }}"]}}], noUsage: true}
- name: answer
  match: {turn: 3, lastRole: tool}
  reply: {text: Done., usage: {input: 103, output: 13}}
- name: an attempt that fails
  times: 1
  match: {contains: Try twice}
  fault: {status: 400, code: invalid_request_error, message: No}
- name: anything else
  reply: {text: Yes., usage: {input: 104, output: 14}}
`

// spoken is what the events of tasks say about their requests, added up in the most obvious way.
type spoken struct {
	Requests, Unknown, Input, Output int64
	Attempts                         int64
}

// spokenBy adds up the events of a task.
func spokenBy(p *standalone.Platform, s *spoken, task string) {
	p.T.Helper()
	list, err := p.API().ExecutionEvents("default").List(p.T.Context(), metav1.ListOptions{FieldSelector: "taskName=" + task})
	if err != nil {
		p.T.Fatal(err)
	}
	attempt, counted := "", map[string]bool{}
	for i := range list.Items {
		e := &list.Items[i]
		var c struct{ Attempt int }
		if e.Content != nil {
			if err := json.Unmarshal(e.Content.Raw, &c); err != nil {
				p.T.Fatal(err)
			}
		}
		switch e.Type {
		case v1alpha1.EventWorkerStarted:
			attempt = fmt.Sprint(task, "/", c.Attempt)
		case v1alpha1.EventModelRequestStarted:
			s.Requests++
			if !counted[attempt] {
				counted[attempt] = true
				s.Attempts++
			}
		case v1alpha1.EventModelRequestCompleted, v1alpha1.EventModelRequestFailed:
			if e.InputTokens != nil && e.OutputTokens != nil {
				s.Input, s.Output = s.Input+*e.InputTokens, s.Output+*e.OutputTokens
			} else { // also where the vendor refused it: it reports nothing of such a request
				s.Unknown++
			}
		}
	}
}

// TestUsageOfAWholeRequest: one report of an issue has all that was asked for it: a coordinator, the task that it delegated,
// whose request was repeated, a fork, and a task of two attempts. It equals what the events of these tasks and the vendor say,
// and has nothing of another task.
func TestUsageOfAWholeRequest(t *testing.T) {
	kit.Needs(t, kit.Minutes)
	t.Parallel()
	p, model := standalone.WithModel(t, usageScript)
	p.Team()
	issue := map[string]string{
		v1alpha1.LabelPrefix + "github-repository": "o/r", v1alpha1.LabelPrefix + "monitor-item-kind": "issue", v1alpha1.LabelPrefix + "monitor-item-number": "7",
	}
	give := func(name, agent, prompt string, of map[string]string) {
		t.Helper()
		kit.Must[*v1alpha1.Task](t)(p.Tasks().Create(t.Context(), &v1alpha1.Task{ObjectMeta: metav1.ObjectMeta{Name: name, Annotations: of}, Spec: v1alpha1.TaskSpec{
			Type: v1alpha1.TaskTypeAI, Prompt: prompt, AgentRef: &v1alpha1.NamespacedReference{Name: agent},
			RetryPolicy: &v1alpha1.RetryPolicy{MaxRetries: 1, InitialDelay: v1alpha1.DurationOf(1e6)},
		}}, metav1.CreateOptions{}))
		p.AwaitPhase(name, v1alpha1.TaskSucceeded)
	}
	give("boss", "chief", "Ask the clerk.", issue)
	give("flaky", "clerk", "Try twice.", issue)
	give("other", "clerk", "Nothing to do with it.", nil)
	kit.Must[*v1alpha1.TaskFork](t)(p.Tasks().Fork(t.Context(), "boss", &v1alpha1.TaskFork{Spec: v1alpha1.TaskForkSpec{NewTaskName: "again", Prompt: "Say yes."}}, metav1.CreateOptions{}))
	p.AwaitPhase("again", v1alpha1.TaskSucceeded)

	all := kit.Must[*v1alpha1.TaskList](t)(p.Tasks().List(t.Context(), metav1.ListOptions{}))
	var want, rest spoken
	names := map[string]bool{}
	for i := range all.Items {
		name := all.Items[i].Name
		if name == "other" {
			spokenBy(p, &rest, name)
			continue
		}
		names[name] = true
		spokenBy(p, &want, name)
	}
	said := func(u *v1alpha1.UsageTotals) spoken {
		s := spoken{Requests: u.Calls, Unknown: u.MissingMeasurements, Attempts: u.Attempts}
		if u.InputTokens != nil && u.OutputTokens != nil {
			s.Input, s.Output = *u.InputTokens, *u.OutputTokens
		}
		return s
	}
	r := usageReport(p)
	if d := cmp.Diff(want, said(&r.Summary.UsageTotals)); d != "" || len(r.Works) != 1 || r.Summary.UnfinishedWork != 0 {
		t.Fatalf("the report differs (-events +report):\n%s%+v", d, r.Works)
	}
	if d := cmp.Diff(rest, said(&r.OtherWork[1].Usage)); d != "" {
		t.Errorf("other requests differ (-events +report):\n%s", d)
	}
	if n := int64(len(model.Exchanges())); n != want.Requests+rest.Requests {
		t.Errorf("the vendor got %d requests, the report has %d", n, want.Requests+rest.Requests)
	}
	// At least: delegate, two of the clerk, wait, answer, two attempts, of which one was refused, and the fork, of five attempts in four tasks.
	if want.Requests < 8 || want.Unknown != 3 || want.Attempts != 5 || len(names) < 4 {
		t.Errorf("the history shows too little: %+v of %v", want, names)
	}
	u := kit.Must[*v1alpha1.UsageReport](t)(p.API().UsageReports("default").Create(t.Context(), &v1alpha1.UsageReport{Spec: v1alpha1.UsageReportSpec{
		Mode: v1alpha1.UsageOfWork, WorkID: r.Works[0].ID,
	}}, metav1.CreateOptions{}))
	for _, task := range u.Status.Work.Tasks {
		if !names[task.TaskName] {
			t.Errorf("task %s is not of the request, or twice in it", task.TaskName)
		}
		delete(names, task.TaskName)
	}
	if len(names) > 0 {
		t.Errorf("the detail lacks %v", names)
	}
}
