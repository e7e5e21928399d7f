// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package toolbox

import (
	"context"
	"maps"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/platform-ai/platform/pkg/apis/core/v1alpha1"
	"github.com/platform-ai/platform/pkg/tool"
	"github.com/platform-ai/platform/pkg/tool/builtin"
)

// applyModel sets what is given of a model.
func applyModel(m *builtin.AgentModel, to *v1alpha1.AgentSpec) {
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

// specOf returns the agent's specification. provider is that of the chat, which an agent without a runtime uses if it names none.
func specOf(a *builtin.CreateAgentArguments, provider string) (*v1alpha1.AgentSpec, error) {
	spec := &v1alpha1.AgentSpec{Tools: toolsOf(a.Tools)}
	if a.Runtime == nil {
		spec.ProviderRef = &v1alpha1.NamespacedReference{Name: provider}
	}
	applyModel(a.Model, spec)
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
	spec.Resources, err = requirements(a.Resources)
	return spec, err
}

// requirements returns the resources as the API has them; nil for none.
func requirements(r *builtin.AgentResources) (*corev1.ResourceRequirements, error) {
	if r == nil {
		return nil, nil
	}
	out := &corev1.ResourceRequirements{}
	for _, of := range []struct {
		name string
		from *builtin.AgentQuantities
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

func (b *Box) createAgent(ctx context.Context, a builtin.CreateAgentArguments) (any, error) {
	if err := b.in(a.Namespace); err != nil {
		return nil, err
	}
	spec, err := specOf(&a, b.Provider)
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

func (b *Box) updateAgent(ctx context.Context, a builtin.UpdateAgentArguments) (any, error) {
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
	applyModel(a.Model, &agent.Spec)
	if _, err := agents.Update(ctx, agent, metav1.UpdateOptions{FieldManager: fieldManager}); err != nil {
		return nil, Explain(err)
	}
	return changed{Name: a.Name, Message: "the agent was changed; tasks that run are not affected"}, nil
}
