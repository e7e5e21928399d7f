// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package plan_test

import (
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/platform-ai/platform/pkg/apis/core/v1alpha1"
	"github.com/platform-ai/platform/pkg/plan"
)

// fieldsOfMade says of each field of an agent what CheckMade and CompleteMade do with it when a task creates the agent: it is
// refused, allowed because it gives no right, or bounded by what the task has, for which there are cases elsewhere. A field that
// is a struct with fields of their own is left to these.
var fieldsOfMade = map[string]string{
	"providerRef":                        "bounded",
	"model.provider":                     "refused",
	"model.name":                         "allowed",
	"model.temperature":                  "allowed",
	"model.contextWindow":                "allowed",
	"model.maxTokens":                    "allowed",
	"model.fallbacks":                    "refused",
	"systemPrompt.inline":                "allowed",
	"systemPrompt.configMapRef":          "refused",
	"tools":                              "bounded",
	"skills":                             "refused",
	"resources":                          "refused",
	"execution":                          "refused",
	"sandbox.network":                    "bounded",
	"secretRef":                          "refused",
	"session":                            "refused",
	"memory":                             "refused",
	"recording":                          "refused",
	"rateLimit":                          "refused",
	"coordination.enabled":               "allowed",
	"coordination.allowedAgents":         "bounded",
	"coordination.maxConcurrentChildren": "bounded",
	"coordination.maxDepth":              "bounded",
	"coordination.maxTasks":              "bounded",
	"coordination.autonomous":            "refused",
	"coordination.maxIterations":         "refused",
	"coordination.approvalRequiredTools": "refused",
	"coordination.approvalTimeout":       "refused",
	"runtime":                            "refused",
	"ttlAfterLastTask":                   "refused",
}

// apart are the structs whose fields are decided one by one.
var apart = []reflect.Type{
	reflect.TypeFor[v1alpha1.AgentModel](), reflect.TypeFor[v1alpha1.AgentSystemPrompt](), reflect.TypeFor[v1alpha1.AgentSandbox](), reflect.TypeFor[v1alpha1.AgentCoordination](),
}

// makers are a task that may create agents, and its agent.
func makers() (*v1alpha1.Task, *v1alpha1.Agent) {
	task, coordinator := &v1alpha1.Task{}, &v1alpha1.Agent{}
	task.Namespace, task.Name, task.Spec.Type = "n", "t", v1alpha1.TaskTypeAI
	coordinator.Namespace, coordinator.Name = "n", "lead"
	coordinator.Spec.ProviderRef = &v1alpha1.NamespacedReference{Name: "p"}
	coordinator.Spec.Coordination = &v1alpha1.AgentCoordination{Enabled: true}
	return task, coordinator
}

// fill sets a field, and what it consists of, to something.
func fill(v reflect.Value) {
	switch v.Kind() {
	case reflect.Pointer:
		v.Set(reflect.New(v.Type().Elem()))
		fill(v.Elem())
	case reflect.Slice:
		v.Set(reflect.MakeSlice(v.Type(), 1, 1))
	case reflect.String:
		v.SetString("x")
	case reflect.Bool:
		v.SetBool(true)
	case reflect.Int32, reflect.Int64:
		v.SetInt(1)
	case reflect.Float64:
		v.SetFloat(1)
	default: // a struct counts as set if there is one
	}
}

// TestEveryFieldOfMadeAgents: what an agent may get from a task that creates it is decided for each of its fields, so a field
// that is added later is not forgotten.
func TestEveryFieldOfMadeAgents(t *testing.T) {
	seen := map[string]bool{}
	var walk func(kind reflect.Type, prefix string, at func(a *v1alpha1.Agent) reflect.Value)
	walk = func(kind reflect.Type, prefix string, at func(a *v1alpha1.Agent) reflect.Value) {
		for i := range kind.NumField() {
			name, _, _ := strings.Cut(kind.Field(i).Tag.Get("json"), ",")
			path, field := prefix+name, func(a *v1alpha1.Agent) reflect.Value { return at(a).Field(i) }
			if typ := kind.Field(i).Type; typ.Kind() == reflect.Pointer && isApart(typ.Elem()) {
				walk(typ.Elem(), path+".", func(a *v1alpha1.Agent) reflect.Value {
					p := field(a)
					p.Set(reflect.New(typ.Elem()))
					return p.Elem()
				})
				continue
			}
			seen[path] = true
			task, coordinator := makers()
			made := coordinator.DeepCopy()
			made.Name, made.Spec.Coordination = "made", nil
			fill(field(made))
			refused := plan.CheckMade(task, coordinator, made)
			switch fieldsOfMade[path] {
			case "refused":
				if refused == nil || !strings.HasPrefix("spec."+path, refused.Field) {
					t.Errorf("spec.%s: %+v, and it must be refused", path, refused)
				}
			case "allowed":
				if refused != nil {
					t.Errorf("spec.%s: %+v, and it must be allowed", path, refused)
				}
			case "bounded":
			default:
				t.Errorf("spec.%s is not decided: may a task give it to an agent that it creates? See plan.CheckMade", path)
			}
		}
	}
	walk(reflect.TypeFor[v1alpha1.AgentSpec](), "", func(a *v1alpha1.Agent) reflect.Value { return reflect.ValueOf(&a.Spec).Elem() })
	for path := range fieldsOfMade {
		if !seen[path] {
			t.Errorf("spec.%s is decided, and there is no such field", path)
		}
	}
}

func isApart(typ reflect.Type) bool {
	return slices.Contains(apart, typ)
}

// TestNetworkOfMadeAgents: programs of an agent that a task creates have the network only if those of the task have it.
func TestNetworkOfMadeAgents(t *testing.T) {
	sandboxes := map[string]*v1alpha1.AgentSandbox{"unset": nil, "None": {Network: v1alpha1.SandboxNetworkNone}, "Public": {Network: v1alpha1.SandboxNetworkPublic}}
	for of, own := range sandboxes {
		for wanted, sandbox := range sandboxes {
			task, coordinator := makers()
			made := coordinator.DeepCopy()
			made.Name, made.Spec.Coordination, made.Spec.Sandbox, coordinator.Spec.Sandbox = "made", nil, sandbox, own
			refused := plan.CheckMade(task, coordinator, made)
			if widens := wanted == "Public" && of != "Public"; widens != (refused != nil) || widens && refused.Field != "spec.sandbox.network" {
				t.Errorf("%s of a task with %s: %+v", wanted, of, refused)
			}
		}
	}
}

// TestChildNetwork: a command that an agent delegates has what programs of that agent have, whatever it says.
func TestChildNetwork(t *testing.T) {
	parent, coordinator := makers()
	for _, tc := range []struct {
		kind     v1alpha1.TaskType
		own      *v1alpha1.TaskDelegation
		agent    v1alpha1.SandboxNetwork
		expected v1alpha1.SandboxNetwork
	}{
		{v1alpha1.TaskTypeAI, nil, "", v1alpha1.SandboxNetworkNone},
		{v1alpha1.TaskTypeAI, nil, v1alpha1.SandboxNetworkPublic, v1alpha1.SandboxNetworkPublic},
		{v1alpha1.TaskTypeAI, &v1alpha1.TaskDelegation{Network: v1alpha1.SandboxNetworkPublic}, v1alpha1.SandboxNetworkNone, v1alpha1.SandboxNetworkNone},
		{v1alpha1.TaskTypeAI, &v1alpha1.TaskDelegation{}, v1alpha1.SandboxNetworkPublic, v1alpha1.SandboxNetworkPublic},
		{v1alpha1.TaskTypeContainer, &v1alpha1.TaskDelegation{}, v1alpha1.SandboxNetworkPublic, v1alpha1.SandboxNetworkNone},
		{v1alpha1.TaskTypeContainer, &v1alpha1.TaskDelegation{Network: v1alpha1.SandboxNetworkPublic}, "", v1alpha1.SandboxNetworkPublic},
		{v1alpha1.TaskTypeContainer, nil, v1alpha1.SandboxNetworkPublic, v1alpha1.SandboxNetworkNone},
	} {
		parent.Spec.Type, parent.Status.Delegation, coordinator.Spec.Sandbox = tc.kind, tc.own, &v1alpha1.AgentSandbox{Network: tc.agent}
		if got := plan.ChildNetwork(parent, coordinator); got != tc.expected {
			t.Errorf("%s below %+v by an agent with %q: %s", tc.kind, tc.own, tc.agent, got)
		}
	}
	if got := plan.ChildNetwork(parent, nil); got != v1alpha1.SandboxNetworkNone {
		t.Errorf("without an agent: %s", got)
	}
}

// TestMadeAgentsAreRecordedAlike: an agent that a task makes is recorded as the maker is.
func TestMadeAgentsAreRecordedAlike(t *testing.T) {
	task, coordinator := makers()
	coordinator.Spec.Recording = &v1alpha1.AgentRecording{Mode: v1alpha1.RecordingDigests}
	made := coordinator.DeepCopy()
	made.Spec.Recording = nil
	if plan.CompleteMade(task, coordinator, made); made.Spec.Recording == nil || made.Spec.Recording.Mode != v1alpha1.RecordingDigests {
		t.Errorf("it is recorded as %+v", made.Spec.Recording)
	}
}
