// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package coordination

import (
	"context"
	"encoding/json"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/platform-ai/platform/pkg/apis/core/v1alpha1"
	"github.com/platform-ai/platform/pkg/tool"
	"github.com/platform-ai/platform/pkg/tool/builtin"
	"github.com/platform-ai/platform/pkg/worker/toolkit"
)

type detachArguments struct {
	TaskName string `json:"task_name"`
	Reason   string `json:"reason"`
}

type detachTool struct{ *family }

var _ tool.Tool = detachTool{}

// Definition describes the tool.
func (detachTool) Definition() tool.Definition { return builtin.DetachTask.Definition() }

// Call detaches the child. A task that has ended is left as it is, and its phase is the answer.
func (t detachTool) Call(ctx context.Context, raw json.RawMessage) (any, error) {
	a, err := decode[detachArguments](raw)
	if err != nil {
		return nil, err
	}
	child, err := t.childNamed(ctx, a.TaskName)
	if err != nil {
		return nil, err
	}
	if child.Status.Phase.Terminal() {
		return changed{TaskName: child.Name, Status: string(child.Status.Phase)}, nil
	}
	tasks := t.api.CoreV1alpha1().Tasks(t.task.Namespace)
	err = t.persist(ctx, func() error {
		_, err := tasks.Detach(ctx, child.Name, &v1alpha1.TaskDetachment{Reason: a.Reason}, metav1.CreateOptions{})
		return err
	})
	if apierrors.IsConflict(err) { // it ended meanwhile
		if child, err = tasks.Get(ctx, child.Name, metav1.GetOptions{}); err == nil {
			return changed{TaskName: child.Name, Status: string(child.Status.Phase)}, nil
		}
	}
	if err != nil {
		return nil, toolkit.Explain(ctx, err)
	}
	return changed{TaskName: child.Name, Status: "detached"}, nil
}
