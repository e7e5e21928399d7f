// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

// Package progress provides the tool update_plan, with which an agent keeps the plan of its task.
package progress

import (
	"context"
	"errors"
	"strings"

	"github.com/platform-ai/platform/pkg/apis/core/v1alpha1"
	limits "github.com/platform-ai/platform/pkg/readmodel/progress"
	"github.com/platform-ai/platform/pkg/tool"
	"github.com/platform-ai/platform/pkg/tool/builtin"
	"github.com/platform-ai/platform/pkg/worker/toolkit"
)

// Builtin is the tool update_plan.
var Builtin = toolkit.Tool{Of: builtin.UpdatePlan, New: func(g toolkit.Given) (tool.Tool, error) { return New(g.UpdatePlan) }}

// Result is the result of update_plan.
type Result struct {
	Status string `json:"status"`
}

// New makes the tool. update stores a plan in place of the one before.
func New(update func(ctx context.Context, p *v1alpha1.TaskPlan) error) (tool.Tool, error) {
	if update == nil {
		return nil, errors.New("plans cannot be stored here")
	}
	return tool.New(builtin.UpdatePlan.Definition(),
		func(ctx context.Context, a builtin.PlanArguments) (any, error) {
			if strings.TrimSpace(a.PlanDocument) == "" {
				return nil, tool.InvalidArguments("plan_document: must not be blank")
			}
			p := &v1alpha1.TaskPlan{Summary: a.Summary, PlanDocument: a.PlanDocument, ProgressPct: a.ProgressPct, GoalComplete: a.GoalComplete}
			if err := limits.Check(p); err != nil {
				return nil, tool.InvalidArguments("%v", err)
			}
			if err := update(ctx, p); err != nil {
				return nil, err
			}
			return Result{Status: "the plan is stored"}, nil
		}), nil
}
