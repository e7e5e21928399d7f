// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

// Package plantest provides the cases that admission, the controller and the worker must decide in the same way:
// tasks, the objects that they refer to, and the reasons with which they are refused.
package plantest

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/platform-ai/platform/pkg/apis/core/v1alpha1"
)

// Namespace is the namespace of the tasks; Other is another one with objects.
const (
	Namespace = "n"
	Other     = "other"
)

// Case is a task and the decision about it.
type Case struct {
	Name string
	Task *v1alpha1.Task
	// Reason is empty for a task that can run.
	Reason string
	// Missing is set if the cause is an object that may still be created.
	Missing bool
	// Written is set if the task alone shows the cause, so that admission rejects it.
	Written bool
	// Unseen is set if a worker does not check the rule, because it was decided before the run was started.
	Unseen bool
}

func in(namespace, name string) metav1.ObjectMeta {
	return metav1.ObjectMeta{Namespace: namespace, Name: name}
}

func ref(name string) *v1alpha1.NamespacedReference { return &v1alpha1.NamespacedReference{Name: name} }

func key(name, key string) *v1alpha1.KeyReference {
	return &v1alpha1.KeyReference{Name: name, Key: key}
}

// AI returns a task of type ai that can run, with changes.
func AI(change ...func(*v1alpha1.TaskSpec)) *v1alpha1.Task {
	t := &v1alpha1.Task{ObjectMeta: in(Namespace, "t"), Spec: v1alpha1.TaskSpec{
		Type: v1alpha1.TaskTypeAI, Prompt: "hello", AI: &v1alpha1.TaskAI{ProviderRef: ref("openai")},
	}}
	for _, c := range change {
		c(&t.Spec)
	}
	return t
}

// Container returns a task of type container that can run, with changes.
func Container(change ...func(*v1alpha1.TaskSpec)) *v1alpha1.Task {
	t := &v1alpha1.Task{ObjectMeta: in(Namespace, "t"), Spec: v1alpha1.TaskSpec{Type: v1alpha1.TaskTypeContainer, Command: []string{"true"}}}
	for _, c := range change {
		c(&t.Spec)
	}
	return t
}

// With returns a change to spec.ai.
func With(change func(*v1alpha1.TaskAI)) func(*v1alpha1.TaskSpec) {
	return func(s *v1alpha1.TaskSpec) { change(s.AI) }
}

// ByAgent returns a change that leaves everything but the prompt to the named agent.
func ByAgent(name string) func(*v1alpha1.TaskSpec) {
	return func(s *v1alpha1.TaskSpec) { s.AgentRef, s.AI = ref(name), nil }
}

func provider(namespace, name string, typ v1alpha1.ProviderType, change ...func(*v1alpha1.ProviderSpec)) *v1alpha1.Provider {
	p := &v1alpha1.Provider{ObjectMeta: in(namespace, name), Spec: v1alpha1.ProviderSpec{
		Type: typ, DefaultModel: "model", SecretRef: v1alpha1.ProviderSecretReference{Name: "keys"},
	}}
	for _, c := range change {
		c(&p.Spec)
	}
	return p
}

func agent(name string, change func(*v1alpha1.AgentSpec)) *v1alpha1.Agent {
	a := &v1alpha1.Agent{ObjectMeta: in(Namespace, name), Spec: v1alpha1.AgentSpec{ProviderRef: ref("openai")}}
	change(&a.Spec)
	return a
}

func tool(name string, change ...func(*v1alpha1.ToolSpec)) *v1alpha1.Tool {
	t := &v1alpha1.Tool{ObjectMeta: in(Namespace, name), Spec: v1alpha1.ToolSpec{Description: name, HTTP: &v1alpha1.ToolHTTP{URL: "https://tool.example"}}}
	for _, c := range change {
		c(&t.Spec)
	}
	return t
}

// agentRuntime is a registered runtime that can be used, with changes.
func agentRuntime(name string, change ...func(*v1alpha1.AgentRuntime)) *v1alpha1.AgentRuntime {
	r := &v1alpha1.AgentRuntime{ObjectMeta: in(Namespace, name)}
	r.Generation = 1
	r.Spec.ContractVersion, r.Spec.Deployment.Endpoint = v1alpha1.HarnessV2, "https://runtime.example/"
	r.Spec.ClientAuth.ControllerBearerTokenSecretRef, r.Spec.ClientAuth.OperationCapabilitySecretRef = key("keys", "token"), key("keys", "api-key")
	r.Status.Ready, r.Status.ObservedGeneration = true, 1
	r.Status.ObservedCapabilities = &v1alpha1.AgentRuntimeCapabilities{
		RuntimeInstanceID: "i-1", WorkspaceGovernance: &v1alpha1.AgentRuntimeGovernance{Mode: v1alpha1.GovernanceStrict},
		Limits: &v1alpha1.AgentRuntimeLimits{MaxPromptLeaseMillis: new(int64(60_000)), MaxRequestBytes: new(int64(64 << 10))},
	}
	for _, f := range change {
		f(r)
	}
	return r
}

// at is an agent at a registered runtime.
func at(name string) *v1alpha1.Agent {
	return agent("at-"+name, func(s *v1alpha1.AgentSpec) {
		s.ProviderRef, s.Runtime = nil, &v1alpha1.AgentCodingRuntime{RuntimeRef: &v1alpha1.LocalReference{Name: name}}
	})
}

// Secrets returns the Secrets that Objects refer to.
func Secrets() []*corev1.Secret {
	data := map[string][]byte{"api-key": []byte("value-1"), "token": []byte("value-2"), "empty": nil}
	return []*corev1.Secret{
		{ObjectMeta: in(Namespace, "keys"), Data: data},
		{ObjectMeta: in(Namespace, "unused"), Data: map[string][]byte{"other": []byte("x")}},
		{ObjectMeta: in(Other, "keys"), Data: data},
	}
}

// ConfigMaps returns the ConfigMaps that Objects refer to.
func ConfigMaps() []*corev1.ConfigMap {
	return []*corev1.ConfigMap{{ObjectMeta: in(Namespace, "texts"), Data: map[string]string{"text": "of a ConfigMap"}}}
}

// Objects returns the objects of the platform's API group that the tasks of Cases refer to.
func Objects() []runtime.Object {
	azure := func(s *v1alpha1.ProviderSpec) {
		s.BaseURL, s.Azure = "https://azure.example", &v1alpha1.AzureProvider{DeploymentName: "deployment"}
	}
	return []runtime.Object{
		provider(Namespace, "openai", v1alpha1.ProviderOpenAI), provider(Other, "openai", v1alpha1.ProviderOpenAI),
		provider(Namespace, "azure", v1alpha1.ProviderAzureOpenAI, azure), provider(Namespace, "azure-2", v1alpha1.ProviderAzureOpenAI, azure),
		provider(Namespace, "claude", v1alpha1.ProviderAnthropic), provider(Namespace, "strange", "strange"),
		provider(Namespace, "no-block", v1alpha1.ProviderAzureOpenAI),
		provider(Namespace, "bad-url", v1alpha1.ProviderAzureOpenAI, azure, func(s *v1alpha1.ProviderSpec) { s.BaseURL = "https://u:p@host" }),
		provider(Other, "no-model", v1alpha1.ProviderOpenAI, func(s *v1alpha1.ProviderSpec) { s.DefaultModel = "" }),
		provider(Namespace, "no-secret", v1alpha1.ProviderAzureOpenAI, azure, func(s *v1alpha1.ProviderSpec) { s.SecretRef.Name = "gone" }),
		provider(Namespace, "no-key", v1alpha1.ProviderAzureOpenAI, azure, func(s *v1alpha1.ProviderSpec) { s.SecretRef.Name = "unused" }),
		provider(Namespace, "empty-key", v1alpha1.ProviderAzureOpenAI, azure, func(s *v1alpha1.ProviderSpec) { s.SecretRef.Key = "empty" }),
		&v1alpha1.Skill{ObjectMeta: in(Namespace, "skill"), Spec: v1alpha1.SkillSpec{Content: v1alpha1.SkillContent{Inline: "of a Skill"}}},
		tool("open"), tool("weather", func(s *v1alpha1.ToolSpec) { s.HTTP.AuthSecretRef = key("keys", "token") }),
		tool("mcp", func(s *v1alpha1.ToolSpec) { s.HTTP, s.MCP = nil, &v1alpha1.ToolMCP{} }),
		tool("actor", func(s *v1alpha1.ToolSpec) {
			s.HTTP, s.MCP = nil, &v1alpha1.ToolMCP{SubstrateActor: &v1alpha1.ToolSubstrateActor{}}
		}),
		tool("remote", func(s *v1alpha1.ToolSpec) {
			s.HTTP, s.MCP = nil, &v1alpha1.ToolMCP{Remote: &v1alpha1.ToolMCPRemote{URL: "https://mcp.example/mcp"}}
		}),
		tool("remote-key", func(s *v1alpha1.ToolSpec) {
			s.HTTP, s.MCP = &v1alpha1.ToolHTTP{AuthSecretRef: key("gone", "token")}, &v1alpha1.ToolMCP{Remote: &v1alpha1.ToolMCPRemote{URL: "https://mcp.example/mcp"}}
		}),
		tool("policy", func(s *v1alpha1.ToolSpec) { s.HTTP.OutboundAccessPolicyRef = &v1alpha1.LocalReference{Name: "x"} }),
		tool("schema", func(s *v1alpha1.ToolSpec) { s.Parameters = &apiextensionsv1.JSON{Raw: []byte(`{"type":"array"}`)} }),
		tool("a.dot"), tool("no-secret", func(s *v1alpha1.ToolSpec) { s.HTTP.AuthSecretRef = key("gone", "token") }),
		tool("no-key", func(s *v1alpha1.ToolSpec) { s.HTTP.AuthSecretRef = key("keys", "gone") }),
		agent("plain", func(*v1alpha1.AgentSpec) {}),
		agent("full", func(s *v1alpha1.AgentSpec) {
			s.Model = &v1alpha1.AgentModel{Name: "agent-model", Fallbacks: []v1alpha1.ModelFallback{{ProviderRef: ref("azure")}, {Model: "cheap"}}}
			s.Tools = []v1alpha1.AgentTool{{Name: "weather"}, {Name: "mcp", Enabled: new(false)}, {Name: "file_read"}}
			s.Skills = []v1alpha1.SkillReference{{Name: "skill"}, {ConfigMapRef: key("texts", "text")}}
			s.SystemPrompt = &v1alpha1.AgentSystemPrompt{ConfigMapRef: key("texts", "text")}
		}),
		agent("asks", func(s *v1alpha1.AgentSpec) { s.Tools = []v1alpha1.AgentTool{{Name: "request_approval"}} }),
		agent("gated", func(s *v1alpha1.AgentSpec) {
			s.Tools = []v1alpha1.AgentTool{{Name: "open"}}
			s.Coordination = &v1alpha1.AgentCoordination{ApprovalRequiredTools: []string{"open", "request_approval"}}
		}),
		agent("runtime", func(s *v1alpha1.AgentSpec) {
			s.ProviderRef, s.Runtime = nil, &v1alpha1.AgentCodingRuntime{Type: v1alpha1.RuntimeClaude}
		}),
		agentRuntime("house"),
		agentRuntime("untrusted", func(r *v1alpha1.AgentRuntime) {
			r.Status.ObservedCapabilities.WorkspaceGovernance.Mode = v1alpha1.GovernanceTrusted
		}),
		agentRuntime("changed", func(r *v1alpha1.AgentRuntime) { r.Generation = 2 }),
		agentRuntime("unready", func(r *v1alpha1.AgentRuntime) { r.Status.Ready = false }),
		agentRuntime("old", func(r *v1alpha1.AgentRuntime) { r.Spec.ContractVersion = v1alpha1.HarnessV1 }),
		agentRuntime("hasty", func(r *v1alpha1.AgentRuntime) {
			r.Status.ObservedCapabilities.Limits.MaxPromptLeaseMillis = new(int64(500))
		}),
		agentRuntime("narrow", func(r *v1alpha1.AgentRuntime) { r.Status.ObservedCapabilities.Limits.MaxRequestBytes = new(int64(10)) }),
		agentRuntime("keyless", func(r *v1alpha1.AgentRuntime) { r.Spec.ClientAuth.OperationCapabilitySecretRef = key("keys", "gone") }),
		at("house"), at("untrusted"), at("changed"), at("unready"), at("old"), at("hasty"), at("narrow"), at("keyless"), at("nowhere"),
		agent("coordinates", func(s *v1alpha1.AgentSpec) { s.Coordination = &v1alpha1.AgentCoordination{Enabled: true} }),
		agent("no-provider", func(s *v1alpha1.AgentSpec) { s.ProviderRef = nil }),
		agent("bad-fallback", func(s *v1alpha1.AgentSpec) {
			s.Model = &v1alpha1.AgentModel{Fallbacks: []v1alpha1.ModelFallback{{ProviderRef: ref("strange")}}}
		}),
		agent("mounts-keys", func(s *v1alpha1.AgentSpec) { s.SecretRef = &v1alpha1.LocalReference{Name: "keys"} }),
		agent("mounts-unused", func(s *v1alpha1.AgentSpec) { s.SecretRef = &v1alpha1.LocalReference{Name: "unused"} }),
		agent("programs", func(s *v1alpha1.AgentSpec) {
			s.Tools = []v1alpha1.AgentTool{{Name: "code_exec"}}
			s.Sandbox = &v1alpha1.AgentSandbox{Network: v1alpha1.SandboxNetworkPublic}
		}),
		agent("mounts", func(s *v1alpha1.AgentSpec) { s.SecretRef = &v1alpha1.LocalReference{Name: "gone"} }),
		agent("no-prompt-key", func(s *v1alpha1.AgentSpec) {
			s.SystemPrompt = &v1alpha1.AgentSystemPrompt{ConfigMapRef: key("texts", "gone")}
		}),
	}
}

// Cases returns tasks for a place that runs processes on this machine, refuses only references to other namespaces,
// and supports everything else.
func Cases() []Case {
	return slices.Concat(fine(), ofTasks(), ofModels(), ofTools(), ofTexts(), ofValues())
}

func fine() []Case {
	return []Case{
		{Name: "by itself", Task: AI()},
		{Name: "by its agent", Task: AI(ByAgent("full"))},
		{Name: "command", Task: Container()},
		{Name: "blank prompt beside another", Task: AI(func(s *v1alpha1.TaskSpec) { s.Prompt, s.AI.Prompt = " ", "x" })},
		{Name: "prompt in the session", Task: AI(func(s *v1alpha1.TaskSpec) {
			s.Prompt, s.SessionRef = "", &v1alpha1.TaskSessionReference{Name: "s", PromptIncluded: true}
		})},
		{Name: "unknown tool", Task: AI(With(func(ai *v1alpha1.TaskAI) { ai.Tools = []string{"nobody-knows"} }))},
		{Name: "model of a deployment", Task: AI(With(func(ai *v1alpha1.TaskAI) { ai.ProviderRef = ref("azure") }))},
		{Name: "by vendor", Task: AI(With(func(ai *v1alpha1.TaskAI) { ai.ProviderRef, ai.Provider = nil, v1alpha1.ProviderOpenAI }))},
	}
}

func ofTasks() []Case {
	return []Case{
		{Name: "no prompt", Task: AI(func(s *v1alpha1.TaskSpec) { s.Prompt, s.AI.Prompt = " ", "\n" }), Reason: v1alpha1.ReasonNoPrompt, Written: true},
		{Name: "prior task", Task: AI(func(s *v1alpha1.TaskSpec) { s.PriorTaskRef = ref("x") }), Reason: v1alpha1.ReasonNotSupported, Written: true},
		{Name: "agent task", Task: AI(ByAgent("plain"), func(s *v1alpha1.TaskSpec) { s.Type = v1alpha1.TaskTypeAgent }), Reason: v1alpha1.ReasonRuntimeNotAvailable},
		{Name: "strange type", Task: AI(func(s *v1alpha1.TaskSpec) { s.Type = "strange" }), Reason: v1alpha1.ReasonUnknownType},
		{Name: "no command", Task: Container(func(s *v1alpha1.TaskSpec) { s.Command = nil }), Reason: v1alpha1.ReasonCommandRequired},
		{Name: "no agent", Task: AI(ByAgent("gone")), Reason: v1alpha1.ReasonAgentNotFound, Missing: true},
		{Name: "agent with a runtime", Task: AI(ByAgent("runtime")), Reason: v1alpha1.ReasonIncompatibleAgent},
		{Name: "agent that coordinates", Task: AI(ByAgent("coordinates"))},
	}
}

func ofModels() []Case {
	by := func(name string) *v1alpha1.Task {
		return AI(With(func(ai *v1alpha1.TaskAI) { ai.ProviderRef = ref(name) }))
	}
	other := AI(With(func(ai *v1alpha1.TaskAI) {
		ai.ProviderRef = &v1alpha1.NamespacedReference{Namespace: Other, Name: "openai"}
	}))
	return []Case{
		{Name: "no provider named", Task: AI(ByAgent("no-provider")), Reason: v1alpha1.ReasonNoProvider},
		{Name: "no such provider", Task: by("gone"), Reason: v1alpha1.ReasonProviderNotFound, Missing: true},
		{Name: "none of a type", Task: AI(With(func(ai *v1alpha1.TaskAI) { ai.ProviderRef, ai.Provider = nil, "rare" })), Reason: v1alpha1.ReasonProviderNotFound, Missing: true},
		{Name: "two of a type", Task: AI(With(func(ai *v1alpha1.TaskAI) { ai.ProviderRef, ai.Provider = nil, v1alpha1.ProviderAzureOpenAI })), Reason: v1alpha1.ReasonAmbiguousProvider},
		{Name: "anthropic", Task: by("claude")},
		{Name: "the only one of a type", Task: AI(With(func(ai *v1alpha1.TaskAI) { ai.ProviderRef, ai.Provider = nil, v1alpha1.ProviderAnthropic }))},
		{Name: "strange provider", Task: by("strange"), Reason: v1alpha1.ReasonProviderUnsupported},
		{Name: "strange provider as a fallback", Task: AI(ByAgent("bad-fallback")), Reason: v1alpha1.ReasonProviderUnsupported},
		{Name: "azure without its block", Task: by("no-block"), Reason: v1alpha1.ReasonProviderInvalid},
		{Name: "address with credentials", Task: by("bad-url"), Reason: v1alpha1.ReasonProviderInvalid},
		{Name: "no secret", Task: by("no-secret"), Reason: v1alpha1.ReasonSecretNotFound, Missing: true},
		{Name: "no key", Task: by("no-key"), Reason: v1alpha1.ReasonSecretKeyNotFound, Missing: true},
		{Name: "empty key", Task: by("empty-key"), Reason: v1alpha1.ReasonSecretKeyNotFound, Missing: true},
		{Name: "other namespace", Task: other, Reason: v1alpha1.ReasonNamespaceIsolationViolation, Unseen: true},
	}
}

func ofTools() []Case {
	use := func(name, reason string, missing bool) Case {
		return Case{Name: "tool " + name, Task: AI(With(func(ai *v1alpha1.TaskAI) { ai.Tools = []string{name} })), Reason: reason, Missing: missing}
	}
	return []Case{
		use("weather", "", false), use("request_approval", "", false),
		use("remote", "", false), use("remote-key", v1alpha1.ReasonSecretNotFound, true), use("actor", v1alpha1.ReasonToolInvalid, false),
		use("mcp", v1alpha1.ReasonToolInvalid, false), use("policy", v1alpha1.ReasonToolInvalid, false),
		use("schema", v1alpha1.ReasonToolInvalid, false), use("a.dot", v1alpha1.ReasonToolInvalid, false),
		use("no-secret", v1alpha1.ReasonSecretNotFound, true), use("no-key", v1alpha1.ReasonSecretKeyNotFound, true),
	}
}

func ofTexts() []Case {
	skill := func(s v1alpha1.SkillReference) *v1alpha1.Task {
		return AI(With(func(ai *v1alpha1.TaskAI) { ai.Skills = []v1alpha1.SkillReference{s} }))
	}
	return []Case{
		{Name: "no skill", Task: skill(v1alpha1.SkillReference{Name: "gone"}), Reason: v1alpha1.ReasonSkillNotFound, Missing: true},
		{Name: "no map of a skill", Task: skill(v1alpha1.SkillReference{ConfigMapRef: key("gone", "text")}), Reason: v1alpha1.ReasonConfigMapNotFound, Missing: true},
		{Name: "no key of a skill", Task: skill(v1alpha1.SkillReference{ConfigMapRef: key("texts", "gone")}), Reason: v1alpha1.ReasonConfigMapKeyNotFound, Missing: true},
		{Name: "no key of a system prompt", Task: AI(ByAgent("no-prompt-key")), Reason: v1alpha1.ReasonConfigMapKeyNotFound, Missing: true},
	}
}

func ofValues() []Case {
	env := func(s *corev1.EnvVarSource) *v1alpha1.Task {
		return Container(func(t *v1alpha1.TaskSpec) {
			t.Env = []corev1.EnvVar{{Name: "PLAIN", Value: "x"}, {Name: "V", ValueFrom: s}}
		})
	}
	secret := func(name string, optional bool) *corev1.EnvVarSource {
		return &corev1.EnvVarSource{SecretKeyRef: &corev1.SecretKeySelector{LocalObjectReference: corev1.LocalObjectReference{Name: name}, Key: "token", Optional: &optional}}
	}
	texts := func(key string, optional bool) *corev1.EnvVarSource {
		return &corev1.EnvVarSource{ConfigMapKeyRef: &corev1.ConfigMapKeySelector{LocalObjectReference: corev1.LocalObjectReference{Name: "texts"}, Key: key, Optional: &optional}}
	}
	node := &corev1.EnvVarSource{FieldRef: &corev1.ObjectFieldSelector{FieldPath: "spec.nodeName"}}
	return []Case{
		{Name: "variables", Task: env(secret("keys", false))},
		{Name: "optional secret", Task: env(secret("gone", true))},
		{Name: "optional text", Task: env(texts("gone", true))},
		{Name: "no secret of a variable", Task: env(secret("gone", false)), Reason: v1alpha1.ReasonSecretNotFound, Missing: true, Unseen: true},
		{Name: "no text of a variable", Task: env(texts("gone", false)), Reason: v1alpha1.ReasonConfigMapKeyNotFound, Missing: true, Unseen: true},
		{Name: "field of a pod", Task: env(node), Reason: v1alpha1.ReasonRefused},
		{Name: "no secret to mount", Task: AI(func(s *v1alpha1.TaskSpec) { s.SecretRef = ref("gone") }), Reason: v1alpha1.ReasonSecretNotFound, Missing: true, Unseen: true},
		{Name: "no secret of the agent", Task: AI(ByAgent("mounts")), Reason: v1alpha1.ReasonSecretNotFound, Missing: true, Unseen: true},
	}
}
