// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package task

import (
	"context"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/platform-ai/platform/pkg/apis/core/v1alpha1"
	"github.com/platform-ai/platform/pkg/support"
	"github.com/platform-ai/platform/pkg/worker/tool"
)

// validateSupport refuses what this version cannot do. Of the agent it knows what is stored now; the controller
// looks once more when the task is to start. A field that has an error already gets no second one.
func (r rules) validateSupport(ctx context.Context, t *v1alpha1.Task, found field.ErrorList) field.ErrorList {
	var errs field.ErrorList
	for _, g := range support.Refused(support.Task(t)) {
		if slices.ContainsFunc(found, func(e *field.Error) bool { return strings.HasPrefix(e.Field, g.Path) }) {
			continue
		}
		errs = append(errs, field.Forbidden(field.NewPath(g.Path), g.Text))
	}
	for _, g := range support.AgentOf(t, r.agentOf(ctx, t)) {
		errs = append(errs, field.Forbidden(field.NewPath("spec", "agentRef"), "agent "+t.Spec.AgentRef.Name+": "+g.String()))
	}
	return errs
}

// agentOf is the spec of the task's agent, empty where there is none yet, or one of another namespace.
func (r rules) agentOf(ctx context.Context, t *v1alpha1.Task) *v1alpha1.AgentSpec {
	ref := t.Spec.AgentRef
	if ref == nil || r.agent == nil || ref.Namespace != "" && ref.Namespace != t.Namespace {
		return &v1alpha1.AgentSpec{}
	}
	a, err := r.agent(ctx, ref.Name)
	if err != nil { // the controller decides
		return &v1alpha1.AgentSpec{}
	}
	return &a.Spec
}

// supportWarnings describe what this version, or this host, leaves out.
func (r rules) supportWarnings(ctx context.Context, t *v1alpha1.Task) []string {
	list := support.Warnings(support.Task(t))
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
		if tool.Builtin(name) {
			continue
		}
		if _, err := r.tool(ctx, name); apierrors.IsNotFound(err) {
			list = append(list, support.UnknownTool(path.Index(i).String(), name))
		}
	}
	return list
}
