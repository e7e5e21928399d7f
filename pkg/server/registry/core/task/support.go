// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package task

import (
	"context"
	"fmt"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/platform-ai/platform/pkg/apis/core/v1alpha1"
	"github.com/platform-ai/platform/pkg/plan"
	"github.com/platform-ai/platform/pkg/support"
	"github.com/platform-ai/platform/pkg/tool/builtin"
)

// validatePlan refuses a task that cannot run anywhere, by the rules of package plan. It uses the agent as it is
// stored now; the controller checks again when the task is to start. A field that already has an error does not get a
// second one.
func (r rules) validatePlan(ctx context.Context, t *v1alpha1.Task, found field.ErrorList) field.ErrorList {
	list := plan.OfTask(t)
	if a := r.agentOf(ctx, t); a != nil {
		list = append(list, plan.OfAgent(t, a)...)
	}
	var errs field.ErrorList
	for _, refused := range list {
		if slices.ContainsFunc(found, func(e *field.Error) bool { return strings.HasPrefix(e.Field, refused.Field) }) {
			continue
		}
		path := field.NewPath(refused.Field)
		if refused.Reason == v1alpha1.ReasonNoPrompt {
			errs = append(errs, field.Required(path, fmt.Sprintf("a task of type %s needs it, or spec.ai.prompt", t.Spec.Type)))
			continue
		}
		errs = append(errs, field.Forbidden(path, strings.TrimPrefix(refused.Message, refused.Field+": ")))
	}
	return errs
}

// agentOf returns the task's agent; nil if it does not exist yet or is in another namespace.
func (r rules) agentOf(ctx context.Context, t *v1alpha1.Task) *v1alpha1.Agent {
	ref := t.Spec.AgentRef
	if ref == nil || r.agent == nil || ref.Namespace != "" && ref.Namespace != t.Namespace {
		return nil
	}
	a, err := r.agent(ctx, ref.Name)
	if err != nil { // the controller decides
		return nil
	}
	return a
}

// supportWarnings describe which settings this version or this host does not support.
func (r rules) supportWarnings(ctx context.Context, t *v1alpha1.Task) []string {
	list := slices.Concat(support.Warnings(support.Task(t)), support.IdleOfTask(&t.Spec))
	if r.local && t.Spec.Type != v1alpha1.TaskTypeAgent {
		var p v1alpha1.ExecutionPlacement
		if e := t.Spec.Execution; e != nil {
			p = e.ExecutionPlacement
		}
		list = append(list, support.Local("spec", p, t.Spec.Resources)...)
	}
	if t.Spec.AI == nil || r.tool == nil {
		return list
	}
	path := field.NewPath("spec", "ai", "tools")
	for i, name := range t.Spec.AI.Tools {
		if builtin.Has(name) {
			continue
		}
		if _, err := r.tool(ctx, name); apierrors.IsNotFound(err) {
			list = append(list, support.UnknownTool(path.Index(i).String(), name))
		}
	}
	return list
}
