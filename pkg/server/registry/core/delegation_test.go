// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package core_test

import (
	"context"
	"slices"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clocktesting "k8s.io/utils/clock/testing"

	"github.com/platform-ai/platform/pkg/apis/core/v1alpha1"
	"github.com/platform-ai/platform/pkg/plan"
)

// delegate creates a child of the task by, as its worker does.
func (k *kinsfolk) delegate(by, name, spec string) (*v1alpha1.Task, error) {
	k.t.Helper()
	obj, err := k.Decode(withHead("kind: Task\nspec: "+spec, name))
	if err != nil {
		k.t.Fatal(err)
	}
	child := obj.(*v1alpha1.Task)
	child.Namespace = "default"
	child.OwnerReferences = []metav1.OwnerReference{*metav1.NewControllerRef(k.Task(by), v1alpha1.SchemeGroupVersion.WithKind("Task"))}
	made, err := k.Create(k.by[by], "tasks", child)
	if err != nil {
		return nil, err
	}
	k.by[name] = k.worker(made.(*v1alpha1.Task)) //nolint:fatcontext // a caller of its own, not a nested one
	return made.(*v1alpha1.Task), nil
}

// coordinate makes an agent with a spec.coordination.
func (k *kinsfolk) coordinate(name, coordination string) {
	k.t.Helper()
	k.MustApply("agents", withHead("kind: Agent\nspec: {coordination: "+coordination+"}", name))
}

// root creates a task that nobody delegated, with its worker.
func (k *kinsfolk) root(name, spec string) *v1alpha1.Task {
	k.t.Helper()
	task := k.mustTask(name, spec)
	k.by[name] = k.worker(task) //nolint:fatcontext // a caller of its own, not a nested one
	return task
}

// TestGatesOfTrees: what needs an approval in a task needs one in everything below it, whatever the agents there say, and
// nobody can take that back.
func TestGatesOfTrees(t *testing.T) {
	k := newKinsfolk(t)
	k.coordinate("strict", `{enabled: true, allowedAgents: [{name: "*"}], approvalRequiredTools: [code_exec, request_approval]}`)
	k.coordinate("other", `{enabled: true, allowedAgents: [{name: "*"}], approvalRequiredTools: [deploy, code_exec]}`)
	k.coordinate("free", `{enabled: true, allowedAgents: [{name: "*"}]}`)
	k.root("top", `{type: ai, prompt: p, agentRef: {name: strict}}`)
	for _, tc := range []struct {
		by, name, agent string
		want            []string
	}{
		{"top", "one", "free", []string{"code_exec"}},
		{"one", "two", "other", []string{"code_exec"}},
		{"two", "three", "free", []string{"deploy", "code_exec"}},
		{"lead", "loose", "strict", nil},
	} {
		made, err := k.delegate(tc.by, tc.name, `{type: ai, prompt: "`+tc.name+`", agentRef: {name: `+tc.agent+`}}`)
		if err != nil {
			t.Fatal(err)
		}
		if got := made.Status.Delegation.ApprovalRequiredTools; !slices.Equal(got, tc.want) {
			t.Errorf("%s: %v, want %v", tc.name, got, tc.want)
		}
	}
	fork, err := k.Decode(withHead("kind: Task\nspec: {type: ai, prompt: f, agentRef: {name: free}}", "fork"))
	if err != nil {
		t.Fatal(err)
	}
	fork.(*v1alpha1.Task).Annotations = map[string]string{v1alpha1.AnnotationForkGates: "code_exec,deploy"}
	if fork, err = k.Create(k.User(), "tasks", fork); err != nil {
		t.Fatal(err)
	}
	if _, err := k.Update(k.User(), "tasks", "fork", func(o runtime.Object) { o.(*v1alpha1.Task).Annotations = nil }); err != nil {
		t.Fatal(err)
	}
	if _, err := k.Update(k.As(controllers, nil), "tasks/status", "fork", func(o runtime.Object) {
		o.(*v1alpha1.Task).Status.ApprovalRequiredTools = nil
	}); err != nil {
		t.Fatal(err)
	}
	if got := plan.UsesOf(k.Task("fork"), nil).Gated; !slices.Equal(got, []string{"code_exec", "deploy"}) {
		t.Errorf("a fork needs approvals for %v", got)
	}
	_, err = k.Update(k.As(controllers, nil), "tasks/status", "one", func(o runtime.Object) {
		o.(*v1alpha1.Task).Status.Delegation.ApprovalRequiredTools = nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if got := k.Task("one").Status.Delegation.ApprovalRequiredTools; !slices.Equal(got, []string{"code_exec"}) {
		t.Errorf("after a change of the status: %v", got)
	}
}

// TestDelegationIsRefused: the server refuses a child that breaks a rule of delegation, and the worker reads which.
func TestDelegationIsRefused(t *testing.T) {
	k := newKinsfolk(t)
	k.coordinate("shallow", `{enabled: true, allowedAgents: [{name: "*"}], maxDepth: 1}`)
	k.coordinate("plain", `{enabled: false}`)
	k.coordinate("silent", `{enabled: true}`)
	k.coordinate("picky", `{enabled: true, allowedAgents: [{name: shallow}]}`)
	for name, agent := range map[string]string{"s": "shallow", "p": "plain", "c": "picky", "n": "silent"} {
		k.root("of-"+name, `{type: ai, prompt: p, agentRef: {name: `+agent+`}}`)
	}
	if _, err := k.delegate("of-s", "first", `{type: ai, prompt: q, agentRef: {name: shallow}}`); err != nil {
		t.Fatal(err)
	}
	for name, tc := range map[string]struct{ by, spec, text string }{
		"too deep":            {"first", `{type: ai, prompt: r, agentRef: {name: lead}}`, `the task would be 2 levels below the root, and agent "shallow" allows 1`},
		"a command too deep":  {"first", `{type: container, command: [x]}`, `(spec.coordination.maxDepth)`},
		"not enabled":         {"of-p", `{type: ai, prompt: r, agentRef: {name: lead}}`, `agent "plain" may not delegate: its spec.coordination.enabled is not set`},
		"not on the list":     {"of-c", `{type: ai, prompt: r, agentRef: {name: lead}}`, `agent "default/lead" is not among those that agent "picky" may delegate to`},
		"no list":             {"of-n", `{type: ai, prompt: r, agentRef: {name: lead}}`, `spec.coordination.allowedAgents of agent "silent" is empty, which admits none`},
		"no agent":            {"lead", `{type: ai, prompt: r}`, "a delegated task of type ai needs spec.agentRef"},
		"an unknown agent":    {"lead", `{type: ai, prompt: r, agentRef: {name: nobody}}`, `agent "nobody" does not exist in namespace "default"`},
		"a session":           {"lead", `{type: ai, prompt: r, agentRef: {name: lead}, sessionRef: {name: s}}`, "spec.sessionRef: a delegated task cannot join a session"},
		"a Secret":            {"lead", `{type: ai, prompt: r, agentRef: {name: lead}, secretRef: {name: s}}`, "spec.secretRef: a delegated task may mount only the Secret of its parent"},
		"a variable":          {"lead", `{type: container, command: [x], env: [{name: A, valueFrom: {secretKeyRef: {name: s, key: k}}}]}`, "spec.env[0].valueFrom: "},
		"a model":             {"lead", `{type: ai, prompt: r, agentRef: {name: lead}, ai: {model: m}}`, "spec.ai: "},
		"a tool":              {"lead", `{type: ai, prompt: r, agentRef: {name: lead}, ai: {tools: [code_exec]}}`, `spec.ai.tools[0]: neither the agent of the delegated task nor its parent has the tool "code_exec"`},
		"a schedule":          {"lead", `{type: container, command: [x], schedule: "@daily"}`, "spec.schedule: "},
		"the parent's prompt": {"lead", `{type: ai, prompt: " p ", agentRef: {name: lead}}`, "a task above this one was asked exactly the same"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := k.delegate(tc.by, "refused", tc.spec)
			checkStatus(t, err, 403, tc.text)
		})
	}
}

// TestCyclesOfTwo: two agents that hand the same requests to each other do not go on for ever.
func TestCyclesOfTwo(t *testing.T) {
	k := newKinsfolk(t)
	k.coordinate("ping", `{enabled: true, allowedAgents: [{name: "*"}], maxDepth: 9}`)
	k.coordinate("pong", `{enabled: true, allowedAgents: [{name: "*"}], maxDepth: 9}`)
	k.root("start", `{type: ai, prompt: "find it", agentRef: {name: ping}}`)
	if _, err := k.delegate("start", "second", `{type: ai, prompt: "look for it", agentRef: {name: pong}}`); err != nil {
		t.Fatal(err)
	}
	_, err := k.delegate("second", "third", `{type: ai, prompt: "find\tit ", agentRef: {name: ping}}`)
	checkStatus(t, err, 403, "a task above this one was asked exactly the same")
	if _, err := k.delegate("second", "third", `{type: ai, prompt: "find a part of it", agentRef: {name: ping}}`); err != nil {
		t.Fatal(err)
	}
	_, err = k.delegate("third", "fourth", `{type: ai, prompt: "look for it", agentRef: {name: pong}}`)
	checkStatus(t, err, 403, "a task above this one was asked exactly the same")
	if got := len(k.Task("third").Status.Delegation.Requests); got != 3 {
		t.Errorf("%d requests of the path, want 3", got)
	}
}

// TestTimeOfChildren: a child has no time after its parent's deadline.
func TestTimeOfChildren(t *testing.T) {
	now := clocktesting.NewFakeClock(time.Date(2026, 3, 4, 10, 30, 0, 0, time.UTC))
	k := &kinsfolk{server: startAt(t, t.TempDir(), now), by: map[string]context.Context{}}
	k.coordinate("lead", `{enabled: true, allowedAgents: [{name: lead}]}`)
	k.root("top", `{type: ai, prompt: p, agentRef: {name: lead}, timeout: 10m}`)
	if _, err := k.Update(k.As(controllers, nil), "tasks/status", "top", func(o runtime.Object) {
		o.(*v1alpha1.Task).Status.StartTime = &metav1.Time{Time: now.Now()}
	}); err != nil {
		t.Fatal(err)
	}
	now.Step(4 * time.Minute)
	const child = `{type: ai, prompt: q, agentRef: {name: lead}, timeout: `
	_, err := k.delegate("top", "late", child+`7m}`)
	checkStatus(t, err, 403, "spec.timeout: 7m ends after the parent, which has 6m0s left; use a shorter timeout or none")
	made, err := k.delegate("top", "timely", child+`6m}`)
	if err != nil || !made.Status.Delegation.Deadline.Time.Equal(now.Now().Add(6*time.Minute)) {
		t.Fatalf("%+v, %v", made, err)
	}
	if _, err := k.delegate("timely", "below", `{type: ai, prompt: r, agentRef: {name: lead}, timeout: 8m}`); err == nil {
		t.Error("a grandchild has more time than the root")
	}
	now.Step(6 * time.Minute)
	_, err = k.delegate("top", "over", `{type: ai, prompt: s, agentRef: {name: lead}}`)
	checkStatus(t, err, 403, "the parent's time is over")
}
