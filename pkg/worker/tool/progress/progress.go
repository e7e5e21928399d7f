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
	"github.com/platform-ai/platform/pkg/worker/toolkit"
)

// Name is the name of the tool.
const Name = "update_plan"

// Builtin is the tool update_plan.
var Builtin = toolkit.Builtin{Name: Name, Unlisted: true, New: func(g toolkit.Given) (tool.Tool, error) { return New(g.UpdatePlan) }}

// Arguments are the arguments of update_plan.
type Arguments struct {
	Summary      string `json:"summary" desc:"How far the work is, in a sentence" minLength:"1" maxLength:"4096"`
	PlanDocument string `json:"plan_document" desc:"The whole plan in Markdown: what is done, what was found, and what is to be done next. It replaces the plan that was stored before" minLength:"1" maxLength:"32768"`
	ProgressPct  *int32 `json:"progress_pct,omitempty" desc:"How much of the work is done, in percent" minimum:"0" maximum:"100"`
	GoalComplete bool   `json:"goal_complete,omitempty" desc:"true if the goal is reached and nothing is left to do"`
}

// Result is the result of update_plan.
type Result struct {
	Status string `json:"status"`
}

// New makes the tool. update stores a plan in place of the one before.
func New(update func(ctx context.Context, p *v1alpha1.TaskPlan) error) (tool.Tool, error) {
	if update == nil {
		return nil, errors.New("plans cannot be stored here")
	}
	return tool.New(Name, "Store the plan of your task, so that people can follow it and later iterations can continue it. Call it when the plan changes and after each larger step.",
		func(ctx context.Context, a Arguments) (any, error) {
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
