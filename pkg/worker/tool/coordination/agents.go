// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package coordination

import (
	"context"
	"encoding/json"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/platform-ai/platform/pkg/apis/core/v1alpha1"
	"github.com/platform-ai/platform/pkg/tool"
	"github.com/platform-ai/platform/pkg/tool/builtin"
	"github.com/platform-ai/platform/pkg/worker/toolkit"
)

type createAgentArguments struct {
	Name         string   `json:"name"`
	Provider     string   `json:"provider"`
	Model        string   `json:"model"`
	SystemPrompt string   `json:"systemPrompt"`
	Soul         string   `json:"soul"`
	Tools        []string `json:"tools"`
	Coordination *struct {
		Enabled               bool     `json:"enabled"`
		AllowedAgents         []string `json:"allowedAgents"`
		MaxConcurrentChildren *int32   `json:"maxConcurrentChildren"`
		MaxDepth              *int32   `json:"maxDepth"`
	} `json:"coordination"`
}

// agentCreated is the result of create_agent.
type agentCreated struct {
	AgentName string `json:"agentName"`
	Namespace string `json:"namespace"`
	Status    string `json:"status"`
}

type createAgentTool struct{ *family }

var _ tool.Tool = createAgentTool{}

// Definition describes the tool.
func (createAgentTool) Definition() tool.Definition { return builtin.CreateAgent.Definition() }

// Call creates the agent. One of that name that the task created before is left as it is, because the answer to an earlier
// try may have been lost.
func (t createAgentTool) Call(ctx context.Context, raw json.RawMessage) (any, error) {
	a, err := decode[createAgentArguments](raw)
	if err != nil {
		return nil, err
	}
	prompt := a.SystemPrompt
	if soul := strings.TrimSpace(a.Soul); soul != "" {
		prompt = soul + "\n\n" + prompt
	}
	agent := &v1alpha1.Agent{ObjectMeta: metav1.ObjectMeta{Name: a.Name}, Spec: v1alpha1.AgentSpec{
		ProviderRef: &v1alpha1.NamespacedReference{Name: a.Provider}, Model: &v1alpha1.AgentModel{Name: a.Model},
		SystemPrompt: &v1alpha1.AgentSystemPrompt{Inline: prompt},
	}}
	for _, name := range a.Tools {
		agent.Spec.Tools = append(agent.Spec.Tools, v1alpha1.AgentTool{Name: name})
	}
	if c := a.Coordination; c != nil {
		agent.Spec.Coordination = &v1alpha1.AgentCoordination{Enabled: c.Enabled, MaxConcurrentChildren: c.MaxConcurrentChildren, MaxDepth: c.MaxDepth}
		for _, name := range c.AllowedAgents {
			agent.Spec.Coordination.AllowedAgents = append(agent.Spec.Coordination.AllowedAgents, v1alpha1.NamespacedReference{Name: name})
		}
	}
	agents, tries := t.api.CoreV1alpha1().Agents(t.task.Namespace), 0
	err = t.persist(ctx, func() error {
		tries++
		_, err := agents.Create(ctx, agent, metav1.CreateOptions{})
		return err
	})
	if tries > 1 && apierrors.IsAlreadyExists(err) {
		if now, e := agents.Get(ctx, a.Name, metav1.GetOptions{}); e == nil && t.made(now) {
			err = nil
		}
	}
	if err != nil {
		return nil, toolkit.Explain(ctx, err)
	}
	return agentCreated{AgentName: a.Name, Namespace: t.task.Namespace, Status: "created"}, nil
}

// made reports whether the run's task created an agent.
func (f *family) made(a *v1alpha1.Agent) bool {
	return a.Annotations[v1alpha1.AnnotationCreatedByUID] == string(f.task.UID)
}

type deleteAgentArguments struct {
	Name      string `json:"name"`
	Namespace string `json:"namespace"`
}

// agentDeleted is the result of delete_agent.
type agentDeleted struct {
	Name   string `json:"name"`
	Status string `json:"status"`
}

type deleteAgentTool struct{ *family }

var _ tool.Tool = deleteAgentTool{}

// Definition describes the tool.
func (deleteAgentTool) Definition() tool.Definition { return builtin.DeleteAgent.Definition() }

// Call deletes the agent. The server refuses agents that the task did not create.
func (t deleteAgentTool) Call(ctx context.Context, raw json.RawMessage) (any, error) {
	a, err := decode[deleteAgentArguments](raw)
	if err != nil {
		return nil, err
	}
	if a.Namespace != "" && a.Namespace != t.task.Namespace {
		return nil, tool.InvalidArguments("namespace: the agents that you created are in your own namespace, %s", t.task.Namespace).Suggest("leave namespace out")
	}
	tries := 0
	err = t.persist(ctx, func() error {
		tries++
		return t.api.CoreV1alpha1().Agents(t.task.Namespace).Delete(ctx, a.Name, metav1.DeleteOptions{})
	})
	if tries > 1 && apierrors.IsNotFound(err) { // an earlier try deleted it
		err = nil
	}
	if err != nil {
		return nil, toolkit.Explain(ctx, err)
	}
	return agentDeleted{Name: a.Name, Status: "deleted"}, nil
}
