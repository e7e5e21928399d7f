// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package coordination

import (
	"cmp"
	"context"
	"encoding/json"
	"strconv"
	"strings"

	"github.com/platform-ai/platform/pkg/apis/core/v1alpha1"
	"github.com/platform-ai/platform/pkg/tool"
	"github.com/platform-ai/platform/pkg/tool/builtin"
)

type delegateArguments struct {
	Agent          string                  `json:"agent"`
	Prompt         string                  `json:"prompt"`
	TaskNamespace  string                  `json:"taskNamespace"`
	AgentNamespace string                  `json:"agentNamespace"`
	Namespace      string                  `json:"namespace"`
	Priority       *int32                  `json:"priority"`
	Timeout        string                  `json:"timeout"`
	Workspace      *v1alpha1.TaskWorkspace `json:"workspace"`
	MaxTurns       *int32                  `json:"maxTurns"`
	AllowBash      *bool                   `json:"allowBash"`
	PriorTask      string                  `json:"prior_task"`
	Feedback       string                  `json:"feedback"`
	AutoRetry      bool                    `json:"auto_retry"`
	MaxRetries     *int                    `json:"max_retries"`
}

// defaultMaxRetries is the default of max_retries.
const defaultMaxRetries = 2

// request returns what the child is asked: the feedback of a review comes first.
func (a *delegateArguments) request() string {
	if strings.TrimSpace(a.Feedback) == "" {
		return a.Prompt
	}
	return "FEEDBACK FROM REVIEW: " + a.Feedback + "\n\n" + a.Prompt
}

// changed is the result of a call that changed a task.
type changed struct {
	TaskName string `json:"taskName"`
	Status   string `json:"status"`
}

// created is the result of delegate_task.
type created struct {
	changed
	agent string
}

var _ tool.TaskMaker = created{}

// Child returns the task that was delegated.
func (c created) Child() tool.ChildTask { return tool.ChildTask{Name: c.TaskName, Agent: c.agent} }

type delegateTool struct{ *family }

var _ tool.Tool = delegateTool{}

// Definition describes the tool.
func (delegateTool) Definition() tool.Definition { return builtin.DelegateTask.Definition() }

// Call creates the task. The server makes it one of type agent if its agent has a runtime.
func (t delegateTool) Call(ctx context.Context, raw json.RawMessage) (any, error) {
	a, err := decode[delegateArguments](raw)
	if err != nil {
		return nil, err
	}
	if strings.TrimSpace(a.Prompt) == "" {
		return nil, tool.InvalidArguments("prompt: must say what is to be done")
	}
	if err := t.own("taskNamespace", cmp.Or(a.TaskNamespace, a.Namespace)); err != nil {
		return nil, err
	}
	child := &v1alpha1.Task{Spec: v1alpha1.TaskSpec{
		Type: v1alpha1.TaskTypeAI, Prompt: a.request(),
		AgentRef: &v1alpha1.NamespacedReference{Name: a.Agent, Namespace: cmp.Or(a.AgentNamespace, a.Namespace)},
	}}
	if a.MaxTurns != nil || a.AllowBash != nil {
		child.Spec.AgentRuntime = &v1alpha1.TaskAgentRuntime{MaxTurns: a.MaxTurns, AllowBash: a.AllowBash}
	}
	if err := t.equip(ctx, child, a.Workspace, a.PriorTask); err != nil {
		return nil, err
	}
	if a.AutoRetry {
		most := defaultMaxRetries
		if a.MaxRetries != nil {
			most = *a.MaxRetries
		}
		child.Annotations = map[string]string{
			v1alpha1.AnnotationAutoRetry: "true", v1alpha1.AnnotationMaxRetries: strconv.Itoa(most), v1alpha1.AnnotationOriginalPrompt: a.Prompt,
		}
		if err := t.countRetries(ctx, child); err != nil {
			return nil, err
		}
	}
	if err := t.complete(child, a.Priority, a.Timeout); err != nil {
		return nil, err
	}
	made, err := t.create(ctx, child)
	if err != nil {
		return nil, err
	}
	return created{changed{TaskName: made.Name, Status: "created"}, a.Agent}, nil
}
