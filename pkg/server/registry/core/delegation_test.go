// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package core_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clocktesting "k8s.io/utils/clock/testing"

	"github.com/platform-ai/platform/pkg/apis/core/v1alpha1"
	"github.com/platform-ai/platform/pkg/plan"
	"github.com/platform-ai/platform/pkg/server/registry/coretest"
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
	if _, err := k.Create(k.User(), "tasks", fork); err != nil {
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

// TestTreesHaveASize: a tree has no more delegated tasks than the agents of the path to the new one allow, however many
// workers ask at a time, and never more than the server allows. The refusal says which limit it is.
func TestTreesHaveASize(t *testing.T) {
	k := newKinsfolk(t)
	k.coordinate("few", `{enabled: true, maxTasks: 5, allowedAgents: [{name: "*"}]}`)
	k.coordinate("some", `{enabled: true, maxTasks: 2, allowedAgents: [{name: "*"}]}`)
	k.coordinate("many", `{enabled: true, maxTasks: 1000, allowedAgents: [{name: "*"}]}`)
	k.root("top", `{type: ai, prompt: p, agentRef: {name: few}}`)
	child := func(name, agent string) string {
		return `{type: ai, prompt: "` + name + `", agentRef: {name: ` + agent + `}}`
	}
	for name, agent := range map[string]string{"below-many": "many", "below-some": "some"} {
		if _, err := k.delegate("top", name, child(name, agent)); err != nil {
			t.Fatal(err)
		}
	}
	if got := k.Task("below-many").Status.Delegation.MaxTasks; got != 5 {
		t.Errorf("the record of a child says %d tasks, want 5", got)
	}
	refused := func(by, name, text string) {
		t.Helper()
		_, err := k.delegate(by, name, child(name, "many"))
		checkStatus(t, err, 403, text)
		if status, ok := errors.AsType[*apierrors.StatusError](err); !ok || !apierrors.HasStatusCause(status, v1alpha1.ReasonTreeLimitReached) {
			t.Errorf("%s: no cause %s: %v", name, v1alpha1.ReasonTreeLimitReached, err)
		}
	}
	refused("below-some", "no-room", `the tree of task "top" has 2 delegated tasks, and agent "some" allows 2 (spec.coordination.maxTasks)`)
	var created atomic.Int64
	var workers sync.WaitGroup
	parent := k.Task("below-many")
	for i := range 20 {
		obj, err := k.Decode(withHead("kind: Task\nspec: "+child(fmt.Sprint("n", i), "many"), fmt.Sprint("n", i)))
		if err != nil {
			t.Fatal(err)
		}
		task := obj.(*v1alpha1.Task)
		task.OwnerReferences = []metav1.OwnerReference{*metav1.NewControllerRef(parent, v1alpha1.SchemeGroupVersion.WithKind("Task"))}
		workers.Go(func() {
			if _, err := k.Create(k.by["below-many"], "tasks", task); err == nil {
				created.Add(1)
			}
		})
	}
	workers.Wait()
	if got := created.Load(); got != 3 {
		t.Errorf("%d of 20 tasks at once were created, want the 3 that there was room for", got)
	}
	refused("below-many", "no-room", `the tree of task "top" has 5 delegated tasks, and the agent of a task above allows 5 (spec.coordination.maxTasks)`)

	k.root("huge", `{type: ai, prompt: p, agentRef: {name: many}}`)
	for i := range coretest.TreeTasks {
		if _, err := k.delegate("huge", fmt.Sprint("huge-", i), child(fmt.Sprint("h", i), "many")); err != nil {
			t.Fatal(i, err)
		}
	}
	refused("huge", "one-more", `the tree of task "huge" has 40 delegated tasks, and the server allows 40 (--tree-tasks)`)
	k.Remove("tasks", "huge-3")
	if _, err := k.delegate("huge", "one-more", child("one-more", "many")); err != nil {
		t.Errorf("after a task of the tree was deleted: %v", err)
	}
}
