// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package toolcall

import (
	"bytes"
	"context"
	"fmt"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/platform-ai/platform/pkg/apis/core/v1alpha1"
	"github.com/platform-ai/platform/pkg/tool/builtin"
)

// complete sets what only the server knows, and the typed arguments.
func (j *judge) complete(ctx context.Context, t v1alpha1.ToolCallTask, c *v1alpha1.ToolCall) error {
	c.Spec = v1alpha1.ToolCallSpec{
		TaskName: c.Spec.TaskName, ToolName: c.Spec.ToolName, Kind: c.Spec.Kind, CallID: c.Spec.CallID, Arguments: c.Spec.Arguments,
		Task: t,
	}
	if c.Spec.Arguments == nil || len(bytes.TrimSpace(c.Spec.Arguments.Raw)) == 0 {
		c.Spec.Arguments = &apiextensionsv1.JSON{Raw: []byte("{}")}
	}
	if raw := bytes.TrimSpace(c.Spec.Arguments.Raw); raw[0] != '{' {
		return apierrors.NewBadRequest("spec.arguments: must be an object")
	}
	if err := values(&c.Spec); err != nil {
		return err
	}
	if c.Spec.Kind != "" { // whose names mean nothing here
		if t.Type != v1alpha1.TaskTypeAgent {
			return apierrors.NewBadRequest("spec.kind: must be empty: only tasks of type agent call tools that a coding agent has of its own")
		}
		c.Spec.Source = v1alpha1.ToolSourceAgent
		return nil
	}
	if b, ok := builtin.Find(c.Spec.ToolName); ok {
		c.Spec.Source = v1alpha1.ToolSourceBuiltin
		if b.Typed == nil {
			return nil
		}
		if err := b.Typed(&c.Spec); err != nil {
			return apierrors.NewBadRequest(fmt.Sprintf("spec.arguments: not arguments of %s: %v", c.Spec.ToolName, err))
		}
		return nil
	}
	c.Spec.Source = v1alpha1.ToolSourceCustom
	o, err := j.tool(ctx, c.Spec.ToolName)
	switch {
	case apierrors.IsNotFound(err): // an agent's tools may be in another namespace
	case err != nil:
		return err
	default:
		c.Spec.Class = o.Spec.BrokeredToolClass
	}
	return nil
}

func (j *judge) taskOf(t *v1alpha1.Task) v1alpha1.ToolCallTask {
	out := v1alpha1.ToolCallTask{
		UID: t.UID, Type: t.Spec.Type, Labels: t.Labels, Attempt: t.Status.Attempts,
		CreatedBy: t.Annotations[v1alpha1.AnnotationRequestedBy],
	}
	if j.tasks.Verified(t) {
		out.RequestedBy = t.Spec.RequestedBy
	}
	if t.Spec.AgentRef != nil {
		out.AgentName = t.Spec.AgentRef.Name
	}
	return out
}
