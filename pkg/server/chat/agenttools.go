// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package chat

import (
	"context"
	"maps"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/platform-ai/platform/pkg/apis/core/v1alpha1"
	"github.com/platform-ai/platform/pkg/tool"
)

type agentModel struct {
	Provider      string   `json:"provider,omitempty" desc:"Name of a provider; the same as providerRef"`
	Name          string   `json:"name,omitempty" desc:"Name of the model; default: that of the provider"`
	Temperature   *float64 `json:"temperature,omitempty" desc:"From 0 to 2" minimum:"0" maximum:"2"`
	ContextWindow *int32   `json:"contextWindow,omitempty" minimum:"1"`
	MaxTokens     *int32   `json:"maxTokens,omitempty" desc:"Most tokens of one answer" minimum:"1"`
}

func (m *agentModel) apply(to *v1alpha1.AgentSpec) {
	if m == nil {
		return
	}
	if m.Provider != "" {
		to.ProviderRef = &v1alpha1.NamespacedReference{Name: m.Provider}
	}
	if to.Model == nil {
		to.Model = &v1alpha1.AgentModel{}
	}
	if m.Name != "" {
		to.Model.Name = m.Name
	}
	if m.Temperature != nil {
		to.Model.Temperature = m.Temperature
	}
	if m.ContextWindow != nil {
		to.Model.ContextWindow = m.ContextWindow
	}
	if m.MaxTokens != nil {
		to.Model.MaxTokens = m.MaxTokens
	}
}

type agentCoordination struct {
	Enabled               bool             `json:"enabled,omitempty" desc:"Lets the agent delegate to others"`
	MaxConcurrentChildren *int32           `json:"maxConcurrentChildren,omitempty" desc:"5 by default" minimum:"1"`
	MaxDepth              *int32           `json:"maxDepth,omitempty" desc:"3 by default" minimum:"1"`
	AllowedAgents         []agentReference `json:"allowedAgents,omitempty" desc:"Agents that it may delegate to; without any it may delegate to none. The name * stands for all"`
}

type createAgentArguments struct {
	Name          string             `json:"name" desc:"Name of the agent: lower-case letters, digits and dashes" minLength:"1"`
	Namespace     string             `json:"namespace,omitempty" desc:"Only the namespace of this chat is possible"`
	ProviderRef   string             `json:"providerRef,omitempty" desc:"Name of a provider; default: that of this chat"`
	SystemPrompt  string             `json:"systemPrompt,omitempty" desc:"Instructions of the agent"`
	Tools         []string           `json:"tools,omitempty" desc:"Names of tools that it may use"`
	Model         *agentModel        `json:"model,omitempty"`
	Resources     *agentResources    `json:"resources,omitempty" desc:"What the agent's tasks get of a machine"`
	Runtime       *agentRuntime      `json:"runtime,omitempty" desc:"Makes it a coding agent with a runtime of its own, and without a provider"`
	Coordination  *agentCoordination `json:"coordination,omitempty"`
	InitialPrompt string             `json:"initialPrompt,omitempty" desc:"Prompt of a first task, which is created, too"`
}

// spec returns the agent's specification. provider is that of the chat, which an agent without a runtime uses if it names none.
func (a *createAgentArguments) spec(provider string) (*v1alpha1.AgentSpec, error) {
	spec := &v1alpha1.AgentSpec{Tools: toolsOf(a.Tools)}
	if a.Runtime == nil {
		spec.ProviderRef = &v1alpha1.NamespacedReference{Name: provider}
	}
	a.Model.apply(spec)
	if a.ProviderRef != "" {
		spec.ProviderRef = &v1alpha1.NamespacedReference{Name: a.ProviderRef}
	}
	if a.SystemPrompt != "" {
		spec.SystemPrompt = &v1alpha1.AgentSystemPrompt{Inline: a.SystemPrompt}
	}
	if r := a.Runtime; r != nil {
		spec.Runtime = &v1alpha1.AgentCodingRuntime{Type: v1alpha1.AgentRuntimeType(r.Type), DefaultAllowBash: r.DefaultAllowBash}
		if r.DefaultAllowedTools != nil {
			spec.Runtime.DefaultAllowedTools = *r.DefaultAllowedTools
		}
	}
	if c := a.Coordination; c != nil {
		spec.Coordination = &v1alpha1.AgentCoordination{Enabled: c.Enabled, MaxConcurrentChildren: c.MaxConcurrentChildren, MaxDepth: c.MaxDepth}
		for _, r := range c.AllowedAgents {
			spec.Coordination.AllowedAgents = append(spec.Coordination.AllowedAgents, v1alpha1.NamespacedReference{Name: r.Name, Namespace: r.Namespace})
		}
	}
	var err error
	spec.Resources, err = a.Resources.requirements()
	return spec, err
}

type agentRuntime struct {
	Type                string    `json:"type" desc:"The coding agent" enum:"claude,codex,copilot,opencode"`
	DefaultAllowedTools *[]string `json:"defaultAllowedTools,omitempty" desc:"Tools of the runtime that tasks may use; default: the runtime's own"`
	DefaultAllowBash    *bool     `json:"defaultAllowBash,omitempty" desc:"Whether tasks may run shell commands; default: yes"`
}

type agentResources struct {
	Requests *agentQuantities `json:"requests,omitempty" desc:"What is reserved"`
	Limits   *agentQuantities `json:"limits,omitempty" desc:"What cannot be exceeded"`
}

type agentQuantities struct {
	CPU              string `json:"cpu,omitempty" desc:"Such as 500m or 2"`
	Memory           string `json:"memory,omitempty" desc:"Such as 512Mi or 2Gi"`
	EphemeralStorage string `json:"ephemeral-storage,omitempty" desc:"Disk for temporary files, such as 1Gi"`
}

// requirements returns the resources as the API has them; nil for none.
func (r *agentResources) requirements() (*corev1.ResourceRequirements, error) {
	if r == nil {
		return nil, nil
	}
	out := &corev1.ResourceRequirements{}
	for _, of := range []struct {
		name string
		from *agentQuantities
		to   *corev1.ResourceList
	}{{"requests", r.Requests, &out.Requests}, {"limits", r.Limits, &out.Limits}} {
		if of.from == nil {
			continue
		}
		*of.to = corev1.ResourceList{}
		for name, text := range map[corev1.ResourceName]string{
			corev1.ResourceCPU: of.from.CPU, corev1.ResourceMemory: of.from.Memory, corev1.ResourceEphemeralStorage: of.from.EphemeralStorage,
		} {
			if text == "" {
				continue
			}
			q, err := resource.ParseQuantity(text)
			if err != nil {
				return nil, tool.InvalidArguments("resources.%s.%s: %.32q is not a quantity", of.name, name, text).Suggest(`write it like "500m" for cpu and "512Mi" for memory`)
			}
			(*of.to)[name] = q
		}
	}
	return out, nil
}

type agentWithTask struct {
	AgentName      string `json:"agentName"`
	AgentNamespace string `json:"agentNamespace"`
	TaskName       string `json:"taskName"`
	TaskNamespace  string `json:"taskNamespace"`
	Message        string `json:"message"`
}

func toolsOf(names []string) []v1alpha1.AgentTool {
	var out []v1alpha1.AgentTool
	for _, name := range names {
		out = append(out, v1alpha1.AgentTool{Name: name})
	}
	return out
}

func (b *toolbox) createAgent(ctx context.Context, a createAgentArguments) (any, error) {
	if err := b.in(a.Namespace); err != nil {
		return nil, err
	}
	spec, err := a.spec(b.Provider)
	if err != nil {
		return nil, err
	}
	agent := &v1alpha1.Agent{ObjectMeta: metav1.ObjectMeta{Name: a.Name, Labels: maps.Clone(b.Labels)}, Spec: *spec}
	b.mark(agent)
	agents := b.caller.CoreV1alpha1().Agents(b.Namespace)
	made, err := agents.Create(ctx, agent, metav1.CreateOptions{FieldManager: fieldManager})
	if apierrors.IsAlreadyExists(err) {
		made, err = own(b, err, func() (*v1alpha1.Agent, error) { return agents.Get(ctx, a.Name, metav1.GetOptions{}) })
	}
	if err != nil {
		return nil, Explain(err)
	}
	if a.InitialPrompt == "" {
		return changed{made.Name, made.Namespace, "the agent was created"}, nil
	}
	kind, by := v1alpha1.TaskTypeAI, "create_ai_task"
	if made.Spec.Runtime != nil {
		kind, by = v1alpha1.TaskTypeAgent, "create_agent_task"
	}
	task, err := b.newTask(ctx, made.Name, "", "", v1alpha1.TaskSpec{
		Type: kind, Prompt: a.InitialPrompt, AgentRef: &v1alpha1.NamespacedReference{Name: made.Name},
	})
	if err != nil {
		return nil, tool.Errorf(tool.TypeUnavailable, "agent %s was created, its task was not: %s", made.Name, words(err)).
			Suggest("do not create the agent again; create the task with %s", by)
	}
	return agentWithTask{made.Name, made.Namespace, task.Name, task.Namespace, "the agent and its first task were created"}, nil
}

type updateAgentArguments struct {
	Name         string      `json:"name" desc:"Name of the agent" minLength:"1"`
	Namespace    string      `json:"namespace,omitempty" desc:"Only the namespace of this chat is possible"`
	SystemPrompt *string     `json:"systemPrompt,omitempty" desc:"New instructions"`
	Tools        *[]string   `json:"tools,omitempty" desc:"All tools that it may use from now on"`
	Model        *agentModel `json:"model,omitempty" desc:"What changes of its model"`
}

func (b *toolbox) updateAgent(ctx context.Context, a updateAgentArguments) (any, error) {
	if err := b.in(a.Namespace); err != nil {
		return nil, err
	}
	agents := b.caller.CoreV1alpha1().Agents(b.Namespace)
	agent, err := agents.Get(ctx, a.Name, metav1.GetOptions{})
	if err != nil {
		return nil, Explain(err)
	}
	if a.SystemPrompt != nil {
		agent.Spec.SystemPrompt = nil
		if *a.SystemPrompt != "" {
			agent.Spec.SystemPrompt = &v1alpha1.AgentSystemPrompt{Inline: *a.SystemPrompt}
		}
	}
	if a.Tools != nil {
		agent.Spec.Tools = toolsOf(*a.Tools)
	}
	a.Model.apply(&agent.Spec)
	if _, err := agents.Update(ctx, agent, metav1.UpdateOptions{FieldManager: fieldManager}); err != nil {
		return nil, Explain(err)
	}
	return changed{Name: a.Name, Message: "the agent was changed; tasks that run are not affected"}, nil
}
