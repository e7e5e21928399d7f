// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package coordination

import (
	"cmp"
	"context"
	"encoding/json"

	"github.com/platform-ai/platform/pkg/apis/core/v1alpha1"
	"github.com/platform-ai/platform/pkg/tool"
	"github.com/platform-ai/platform/pkg/tool/builtin"
)

type containerArguments struct {
	Image     string                  `json:"image"`
	Command   []string                `json:"command"`
	Args      []string                `json:"args"`
	Workspace *v1alpha1.TaskWorkspace `json:"workspace"`
	PriorTask string                  `json:"prior_task"`
	Namespace string                  `json:"namespace"`
	Timeout   string                  `json:"timeout"`
	Priority  *int32                  `json:"priority"`
	Schedule  string                  `json:"schedule"`
}

// containerCreated is the result of create_container_task.
type containerCreated struct {
	Name      string             `json:"name"`
	Namespace string             `json:"namespace"`
	Phase     v1alpha1.TaskPhase `json:"phase"`
	Message   string             `json:"message"`
}

var _ tool.TaskMaker = containerCreated{}

// Child returns the task that was created.
func (c containerCreated) Child() tool.ChildTask { return tool.ChildTask{Name: c.Name} }

type containerTool struct{ *family }

var _ tool.Tool = containerTool{}

// Definition describes the tool.
func (containerTool) Definition() tool.Definition { return builtin.CreateContainerTask.Definition() }

// Call creates the task.
func (t containerTool) Call(ctx context.Context, raw json.RawMessage) (any, error) {
	a, err := decode[containerArguments](raw)
	if err != nil {
		return nil, err
	}
	if a.Schedule != "" {
		return nil, notBuilt("schedule", "a schedule would outlive the task that makes it; ask the people you work for to create it")
	}
	if err := t.own("namespace", a.Namespace); err != nil {
		return nil, err
	}
	child := &v1alpha1.Task{Spec: v1alpha1.TaskSpec{Type: v1alpha1.TaskTypeContainer, Image: a.Image, Command: a.Command, Args: a.Args}}
	if err := t.equip(ctx, child, a.Workspace, a.PriorTask); err != nil {
		return nil, err
	}
	if err := t.complete(child, a.Priority, a.Timeout); err != nil {
		return nil, err
	}
	made, err := t.create(ctx, child)
	if err != nil {
		return nil, err
	}
	return containerCreated{
		Name: made.Name, Namespace: made.Namespace, Phase: cmp.Or(made.Status.Phase, v1alpha1.TaskPending),
		Message: "the task was created; wait for it with " + builtin.WaitForTasks.Name,
	}, nil
}
