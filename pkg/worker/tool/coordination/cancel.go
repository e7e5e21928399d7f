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

type cancelArguments struct {
	TaskName  string `json:"task_name"`
	Namespace string `json:"namespace"`
	Reason    string `json:"reason"`
}

type cancelTool struct{ *family }

var _ tool.Tool = cancelTool{}

// Definition describes the tool.
func (cancelTool) Definition() tool.Definition { return builtin.CancelTask.Definition() }

// Call requests the cancellation. A task that has ended is left as it is, and its phase is the answer.
func (t cancelTool) Call(ctx context.Context, raw json.RawMessage) (any, error) {
	a, err := decode[cancelArguments](raw)
	if err != nil {
		return nil, err
	}
	if err := t.own("namespace", a.Namespace); err != nil {
		return nil, err
	}
	tasks := t.api.CoreV1alpha1().Tasks(t.task.Namespace)
	child, err := t.childNamed(ctx, a.TaskName)
	switch {
	case err != nil:
		return nil, err
	case child.Status.Phase.Terminal():
		return changed{TaskName: child.Name, Status: string(child.Status.Phase)}, nil
	case child.Spec.Type == v1alpha1.TaskTypeAgent:
		return nil, tool.Errorf(tool.TypePermissionDenied, "task %s runs on a coding-agent runtime, and such tasks cannot be cancelled by their parent", child.Name)
	}
	body := &v1alpha1.TaskCancellation{Reason: a.Reason}
	err = t.persist(ctx, func() error {
		_, err := tasks.Cancel(ctx, child.Name, body, metav1.CreateOptions{})
		return err
	})
	if apierrors.IsConflict(err) { // it ended meanwhile
		now, err := tasks.Get(ctx, child.Name, metav1.GetOptions{})
		if err != nil {
			return nil, toolkit.Explain(ctx, err)
		}
		return changed{TaskName: now.Name, Status: string(now.Status.Phase)}, nil
	}
	if err != nil {
		return nil, toolkit.Explain(ctx, err)
	}
	return changed{TaskName: child.Name, Status: "cancellation requested"}, nil
}
