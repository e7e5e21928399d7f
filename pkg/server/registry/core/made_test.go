// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package core_test

import (
	"context"
	"fmt"
	"slices"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apiserver/pkg/registry/rest"

	"github.com/platform-ai/platform/pkg/apis/core/v1alpha1"
	"github.com/platform-ai/platform/pkg/plan"
	"github.com/platform-ai/platform/pkg/server/registry/coretest"
)

// newMakers returns the trees of kinsfolk, whose agents have a Provider, a tool and limits.
func newMakers(t *testing.T) *kinsfolk {
	k := newKinsfolk(t)
	for _, name := range []string{"lead", "far"} {
		if _, err := k.Update(k.User(), "agents", name, func(o runtime.Object) {
			s := &o.(*v1alpha1.Agent).Spec
			s.ProviderRef = &v1alpha1.NamespacedReference{Name: "p"}
			s.Tools = []v1alpha1.AgentTool{{Name: "deploy", Enabled: new(true)}, {Name: "unused", Enabled: new(false)}}
			s.RateLimit = &v1alpha1.RateLimit{RequestsPerMinute: new(int32(7))}
			s.Coordination.ApprovalRequiredTools = []string{"deploy"}
			s.Coordination.MaxDepth, s.Coordination.MaxTasks = new(int32(2)), new(int32(30))
			s.Coordination.AllowedAgents = []v1alpha1.NamespacedReference{{Name: name}}
		}); err != nil {
			t.Fatal(err)
		}
	}
	return k
}

func (k *kinsfolk) make(ctx context.Context, name, spec string) (*v1alpha1.Agent, error) {
	k.t.Helper()
	obj, err := k.Decode(withHead("kind: Agent\nspec: "+spec, name))
	if err != nil {
		k.t.Fatal(err)
	}
	a := obj.(*v1alpha1.Agent)
	a.Labels = map[string]string{v1alpha1.LabelCreatedBy: "somebody-else", "team": "x"}
	a.OwnerReferences = []metav1.OwnerReference{{APIVersion: "v1", Kind: "Node", Name: "n", UID: "u"}}
	made, err := k.Create(ctx, "agents", a)
	if err != nil {
		return nil, err
	}
	return made.(*v1alpha1.Agent), nil
}

func (k *kinsfolk) unmake(ctx context.Context, name string) error {
	_, _, err := k.Storage["agents"].(rest.GracefulDeleter).Delete(coretest.WithPath(ctx, "agents"), name, rest.ValidateAllObjectFunc, &metav1.DeleteOptions{})
	return err
}

func (k *kinsfolk) agents() []string {
	k.t.Helper()
	var names []string
	for _, name := range []string{"lead", "far", "made", "gone"} {
		_, err := k.Storage["agents"].(rest.Getter).Get(coretest.WithPath(k.User(), "agents"), name, &metav1.GetOptions{})
		if err == nil {
			names = append(names, name)
		} else if !apierrors.IsNotFound(err) {
			k.t.Fatal(err)
		}
	}
	return names
}

// TestMadeAgents: an agent that a task creates inherits what bounds the task, is deleted by this task alone, may be
// delegated to by it, and belongs to the root task, with which the garbage collector deletes it.
func TestMadeAgents(t *testing.T) {
	k := newMakers(t)
	made, err := k.make(k.by["a"], "made", `{providerRef: {name: p}, model: {name: m}, systemPrompt: {inline: x}, tools: [{name: deploy}, {name: recall_memory}], coordination: {enabled: true, maxDepth: 9, maxTasks: 99}}`)
	if err != nil {
		t.Fatal(err)
	}
	c, owner := made.Spec.Coordination, metav1.GetControllerOf(made)
	if owner == nil || len(made.OwnerReferences) != 1 || owner.UID != k.Task("lead").UID || made.Labels[v1alpha1.LabelCreatedBy] != "a" || len(made.Labels) != 1 ||
		*made.Spec.RateLimit.RequestsPerMinute != 7 || *c.MaxDepth != 2 || *c.MaxTasks != 30 || !slices.Equal(c.ApprovalRequiredTools, []string{"deploy"}) || c.AllowedAgents[0].Name != "lead" {
		t.Errorf("made: %+v %+v", made.ObjectMeta, made.Spec)
	}
	for caller, text := range map[string]string{"b": "only agents that its own task created", "lead": "only agents that its own task created", "d": "only agents"} {
		checkStatus(t, k.unmake(k.by[caller], "made"), 403, text)
	}
	checkStatus(t, k.unmake(k.by["a"], "lead"), 403, "only agents that its own task created")
	_, err = k.Update(k.by["a"], "agents", "made", func(o runtime.Object) { o.(*v1alpha1.Agent).Spec.Tools = nil })
	checkStatus(t, err, 403, "a worker may not do this")
	delegate := func(by string) error {
		_, err := k.delegate(by, "of-"+by, `{type: ai, prompt: q, agentRef: {name: made}}`)
		return err
	}
	if err := delegate("a"); err != nil {
		t.Error(err)
	}
	checkStatus(t, delegate("b"), 403, `agent "default/made" is not among those`)
	if err := k.unmake(k.by["a"], "made"); err != nil {
		t.Fatal(err)
	}
	for i := range plan.MaxMadeAgents {
		if _, err := k.make(k.by["a"], fmt.Sprintf("made-%d", i), `{providerRef: {name: p}}`); err != nil {
			t.Fatal(err)
		}
	}
	_, err = k.make(k.by["a"], "made", `{providerRef: {name: p}}`)
	checkStatus(t, err, 403, "the task has created 20 agents")
	if _, err := k.make(k.by["b"], "made", `{providerRef: {name: p}}`); err != nil {
		t.Fatal(err)
	}
	if got := k.agents(); !slices.Equal(got, []string{"lead", "far", "made"}) {
		t.Errorf("there are: %v", got)
	}
}

// TestMadeAgentsAreRefused: an agent that a task creates has nothing that the task lacks.
func TestMadeAgentsAreRefused(t *testing.T) {
	k := newMakers(t)
	for spec, text := range map[string]string{
		`{}`:                           "spec.providerRef: is required",
		`{providerRef: {name: other}}`: `spec.providerRef: the task itself does not name the Provider "default/other"; it names: default/p`,
		`{providerRef: {name: p, namespace: other}}`:                                `"other/p"`,
		`{providerRef: {name: p}, tools: [{name: code_exec}]}`:                      `spec.tools[0].name: the task itself does not have the tool "code_exec"`,
		`{providerRef: {name: p}, tools: [{name: unused}]}`:                         `spec.tools[0].name`,
		`{providerRef: {name: p}, secretRef: {name: s}}`:                            "spec.secretRef: cannot be set",
		`{providerRef: {name: p}, skills: [{name: s}]}`:                             "spec.skills: cannot be set",
		`{providerRef: {name: p}, systemPrompt: {configMapRef: {name: c, key: k}}}`: "spec.systemPrompt.configMapRef: cannot be set",
		`{providerRef: {name: p}, model: {provider: openai}}`:                       "spec.model.provider: cannot be set",
		`{providerRef: {name: p}, model: {fallbacks: [{providerRef: {name: q}}]}}`:  "spec.model.fallbacks: cannot be set",
		`{providerRef: {name: p}, coordination: {autonomous: true}}`:                "spec.coordination: only",
		`{providerRef: {name: p}, coordination: {allowedAgents: [{name: far}]}}`:    "spec.coordination.allowedAgents[0]: the task itself may not delegate",
		`{providerRef: {name: p}, coordination: {allowedAgents: [{name: "*"}]}}`:    `spec.coordination.allowedAgents[0]: the task itself may not delegate to agent "*"`,
		`{providerRef: {name: p}, rateLimit: {requestsPerMinute: 1000}}`:            "spec.rateLimit: cannot be set",
		`{providerRef: {name: p}, sandbox: {network: Public}}`:                      "spec.sandbox.network: programs of the task itself have no network",
		`{providerRef: {name: p}, execution: {nodeSelector: {a: b}}}`:               "spec.execution: cannot be set",
	} {
		_, err := k.make(k.by["lead"], "made", spec)
		checkStatus(t, err, 403, text)
	}
	plain := k.mustTask("plain", `{type: ai, prompt: p}`)
	_, err := k.make(k.worker(plain), "made", `{providerRef: {name: p}}`)
	checkStatus(t, err, 403, "only a task whose agent has spec.coordination.enabled may create agents")
	if got := k.agents(); !slices.Equal(got, []string{"lead", "far"}) {
		t.Errorf("made: %v", got)
	}
	if _, err := k.make(k.User(), "gone", `{providerRef: {name: other}, secretRef: {name: s}}`); err != nil {
		t.Errorf("a person is refused: %v", err)
	}
}

// TestNetworkOfDelegatedCommands: the server records what the command of a child may connect to, whatever its parent's worker says,
// and nobody changes it.
func TestNetworkOfDelegatedCommands(t *testing.T) {
	k := newMakers(t)
	delegate := func(name string) *v1alpha1.Task {
		t.Helper()
		obj, err := k.Decode(withHead("kind: Task\nspec: {type: container, command: [echo, "+name+"]}", name))
		if err != nil {
			t.Fatal(err)
		}
		child := obj.(*v1alpha1.Task)
		child.Status.Delegation = &v1alpha1.TaskDelegation{Network: v1alpha1.SandboxNetworkPublic}
		child.OwnerReferences = []metav1.OwnerReference{*metav1.NewControllerRef(k.Task("a"), v1alpha1.SchemeGroupVersion.WithKind("Task"))}
		made, err := k.Create(k.by["a"], "tasks", child)
		if err != nil {
			t.Fatal(err)
		}
		return made.(*v1alpha1.Task)
	}
	if d := delegate("closed").Status.Delegation; d == nil || d.Network != v1alpha1.SandboxNetworkNone {
		t.Errorf("without network: %+v", d)
	}
	if _, err := k.Update(k.User(), "agents", "lead", func(o runtime.Object) {
		o.(*v1alpha1.Agent).Spec.Sandbox = &v1alpha1.AgentSandbox{Network: v1alpha1.SandboxNetworkPublic}
	}); err != nil {
		t.Fatal(err)
	}
	if d := delegate("open").Status.Delegation; d == nil || d.Network != v1alpha1.SandboxNetworkPublic {
		t.Errorf("public: %+v", d)
	}
	if d := k.Task("closed").Status.Delegation; d.Network != v1alpha1.SandboxNetworkNone {
		t.Errorf("changed later: %+v", d)
	}
	if _, err := k.make(k.by["a"], "made", `{providerRef: {name: p}, sandbox: {network: Public}}`); err != nil {
		t.Errorf("an agent with the network of the task's own: %v", err)
	}
}
