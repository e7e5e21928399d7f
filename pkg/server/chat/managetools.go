// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package chat

import (
	"context"
	"maps"
	"regexp"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/platform-ai/platform/pkg/apis/core/v1alpha1"
	"github.com/platform-ai/platform/pkg/worker/tool"
)

// What the user says when they want something to be created, changed or deleted. A tool that manages objects is offered
// only then, so that text which the model reads elsewhere cannot lead it to such a call in passing.
var (
	wantsCreate = regexp.MustCompile(`(?i)\b(creat|add|mak(e|ing)\b|new\b|set\s?up|defin|build|regist|generat)`)
	wantsUpdate = regexp.MustCompile(`(?i)\b(updat|chang|edit|modif|adjust|alter|replac|renam|set\b|switch|improv|fix|rewrit|extend|give\b)`)
	wantsDelete = regexp.MustCompile(`(?i)\b(delet|remov|drop|destroy|eras|discard|clean|clear|forget|get rid|purg)`)
)

// agrees is a message with which a user only confirms what they asked for before.
var agrees = regexp.MustCompile(`(?i)^\W*(yes|yep|yeah|ok(ay)?|sure|please|do (it|so|that)|go (on|ahead)|confirm(ed)?|correct|right|continue|proceed)\b.{0,40}$`)

// intent returns the words that decide which tools are offered: the user's message, and the one before it if the message
// only confirms that.
func intent(message string, history []v1alpha1.SessionMessage) string {
	if !agrees.MatchString(message) {
		return message
	}
	for _, m := range slices.Backward(history) {
		if m.Role == v1alpha1.RoleUser {
			return message + "\n" + m.Content
		}
	}
	return message
}

func manageTools() []entry {
	return []entry{
		operation("create_agent", "Create an agent. With initialPrompt, also a first task of it.", (*toolbox).createAgent).when(wantsCreate.MatchString).again(),
		operation("update_agent", "Change an agent. What is not given stays as it is.", (*toolbox).updateAgent).when(wantsUpdate.MatchString),
		operation("delete_agent", "Delete an agent.", (*toolbox).deleteAgent).when(wantsDelete.MatchString),
		operation("create_tool", "Create a tool that calls an HTTP endpoint.", (*toolbox).createTool).when(wantsCreate.MatchString).again(),
		operation("delete_tool", "Delete a tool of the namespace.", (*toolbox).deleteTool).when(wantsDelete.MatchString),
		operation("delete_session", "Delete a session with everything that was said in it.", (*toolbox).deleteSession).when(wantsDelete.MatchString),
	}
}

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

type agentReference struct {
	Name      string `json:"name" minLength:"1"`
	Namespace string `json:"namespace,omitempty"`
}

type agentCoordination struct {
	Enabled               bool             `json:"enabled,omitempty" desc:"Lets the agent delegate to others"`
	MaxConcurrentChildren *int32           `json:"maxConcurrentChildren,omitempty" desc:"5 by default" minimum:"1"`
	MaxDepth              *int32           `json:"maxDepth,omitempty" desc:"3 by default" minimum:"1"`
	AllowedAgents         []agentReference `json:"allowedAgents,omitempty" desc:"Agents that it may delegate to"`
}

type createAgentArguments struct {
	Name          string             `json:"name" desc:"Name of the agent: lower-case letters, digits and dashes" minLength:"1"`
	Namespace     string             `json:"namespace,omitempty" desc:"Only the namespace of this chat is possible"`
	ProviderRef   string             `json:"providerRef,omitempty" desc:"Name of a provider; default: that of this chat"`
	SystemPrompt  string             `json:"systemPrompt,omitempty" desc:"Instructions of the agent"`
	Tools         []string           `json:"tools,omitempty" desc:"Names of tools that it may use"`
	Model         *agentModel        `json:"model,omitempty"`
	Coordination  *agentCoordination `json:"coordination,omitempty"`
	InitialPrompt string             `json:"initialPrompt,omitempty" desc:"Prompt of a first task, which is created, too"`
}

type changed struct {
	Name      string `json:"name"`
	Namespace string `json:"namespace,omitempty"`
	Message   string `json:"message"`
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
	agent := &v1alpha1.Agent{ObjectMeta: metav1.ObjectMeta{Name: a.Name, Labels: maps.Clone(b.Labels)}, Spec: v1alpha1.AgentSpec{
		ProviderRef: &v1alpha1.NamespacedReference{Name: b.Provider}, Tools: toolsOf(a.Tools),
	}}
	a.Model.apply(&agent.Spec)
	if a.ProviderRef != "" {
		agent.Spec.ProviderRef = &v1alpha1.NamespacedReference{Name: a.ProviderRef}
	}
	if a.SystemPrompt != "" {
		agent.Spec.SystemPrompt = &v1alpha1.AgentSystemPrompt{Inline: a.SystemPrompt}
	}
	if c := a.Coordination; c != nil {
		agent.Spec.Coordination = &v1alpha1.AgentCoordination{Enabled: c.Enabled, MaxConcurrentChildren: c.MaxConcurrentChildren, MaxDepth: c.MaxDepth}
		for _, r := range c.AllowedAgents {
			agent.Spec.Coordination.AllowedAgents = append(agent.Spec.Coordination.AllowedAgents, v1alpha1.NamespacedReference{Name: r.Name, Namespace: r.Namespace})
		}
	}
	b.mark(agent)
	agents := b.caller.CoreV1alpha1().Agents(b.Namespace)
	made, err := agents.Create(ctx, agent, metav1.CreateOptions{FieldManager: fieldManager})
	if apierrors.IsAlreadyExists(err) {
		made, err = own(b, err, func() (*v1alpha1.Agent, error) { return agents.Get(ctx, a.Name, metav1.GetOptions{}) })
	}
	if err != nil {
		return nil, explain(err)
	}
	if a.InitialPrompt == "" {
		return changed{made.Name, made.Namespace, "the agent was created"}, nil
	}
	task, err := b.newTask(ctx, made.Name, "", "", v1alpha1.TaskSpec{
		Type: v1alpha1.TaskTypeAI, Prompt: a.InitialPrompt, AgentRef: &v1alpha1.NamespacedReference{Name: made.Name},
	})
	if err != nil {
		return nil, tool.Errorf(tool.TypeUnavailable, "agent %s was created, its task was not: %s", made.Name, words(err)).
			Suggest("do not create the agent again; create the task with create_ai_task")
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
		return nil, explain(err)
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
		return nil, explain(err)
	}
	return changed{Name: a.Name, Message: "the agent was changed; tasks that run are not affected"}, nil
}

func (b *toolbox) deleteAgent(ctx context.Context, a agentReference) (any, error) {
	return b.deleted(a, "the agent was deleted", func() error {
		return b.caller.CoreV1alpha1().Agents(b.Namespace).Delete(ctx, a.Name, metav1.DeleteOptions{})
	})
}

func (b *toolbox) deleteTool(ctx context.Context, a agentReference) (any, error) {
	return b.deleted(a, "the tool was deleted", func() error {
		return b.caller.CoreV1alpha1().Tools(b.Namespace).Delete(ctx, a.Name, metav1.DeleteOptions{})
	})
}

// deleted deletes an object of the namespace.
func (b *toolbox) deleted(a agentReference, message string, remove func() error) (any, error) {
	if err := b.in(a.Namespace); err != nil {
		return nil, err
	}
	if err := remove(); err != nil {
		return nil, explain(err)
	}
	return changed{Name: a.Name, Message: message}, nil
}

type createToolArguments struct {
	Name        string `json:"name" desc:"Name of the tool: lower-case letters, digits and dashes" minLength:"1"`
	Namespace   string `json:"namespace,omitempty" desc:"Only the namespace of this chat is possible"`
	Description string `json:"description" desc:"What the tool does; models read it" minLength:"1"`
	URL         string `json:"url" desc:"Address of the HTTP endpoint" minLength:"1"`
	Method      string `json:"method,omitempty" desc:"POST by default" enum:"GET,POST,PUT,PATCH,DELETE"`
}

func (b *toolbox) createTool(ctx context.Context, a createToolArguments) (any, error) {
	if err := b.in(a.Namespace); err != nil {
		return nil, err
	}
	t := &v1alpha1.Tool{ObjectMeta: metav1.ObjectMeta{Name: a.Name, Labels: maps.Clone(b.Labels)}, Spec: v1alpha1.ToolSpec{
		Description: a.Description, HTTP: &v1alpha1.ToolHTTP{URL: a.URL, Method: v1alpha1.ToolMethod(a.Method)},
	}}
	b.mark(t)
	tools := b.caller.CoreV1alpha1().Tools(b.Namespace)
	made, err := tools.Create(ctx, t, metav1.CreateOptions{FieldManager: fieldManager})
	if apierrors.IsAlreadyExists(err) {
		made, err = own(b, err, func() (*v1alpha1.Tool, error) { return tools.Get(ctx, a.Name, metav1.GetOptions{}) })
	}
	if err != nil {
		return nil, explain(err)
	}
	return changed{made.Name, made.Namespace, "the tool was created; agents that name it can use it"}, nil
}

type deleteSessionArguments struct {
	SessionID string `json:"sessionId" desc:"Name of the session" minLength:"1"`
	Namespace string `json:"namespace,omitempty" desc:"Only the namespace of this chat is possible"`
}

type deletedSession struct {
	SessionID string `json:"sessionId"`
	Message   string `json:"message"`
}

func (b *toolbox) deleteSession(ctx context.Context, a deleteSessionArguments) (any, error) {
	if err := b.in(a.Namespace); err != nil {
		return nil, err
	}
	if a.SessionID == b.Session {
		return nil, tool.InvalidArguments("sessionId: %s is the session of this chat", a.SessionID).
			Suggest("the user can delete it when this turn is over")
	}
	if err := b.caller.CoreV1alpha1().Sessions(b.Namespace).Delete(ctx, a.SessionID, metav1.DeleteOptions{}); err != nil {
		return nil, explain(err)
	}
	return deletedSession{a.SessionID, "the session was deleted"}, nil
}
