// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package builtin

// Tools with which an agent reports to people and asks them.
var (
	UpdatePlan = &Tool{
		Name:        "update_plan",
		Description: "Store the plan of your task, so that people can follow it and later iterations can continue it. Call it when the plan changes and after each larger step.",
		Schema:      schema[PlanArguments],
		In:          Runs, Effects: Writes, Automatic: Coordinators, Unlisted: true,
	}
	RequestApproval = &Tool{
		Name: "request_approval",
		Description: "Ask a person to approve one exact call of a tool that needs approval, and wait for the decision. " +
			"Then call that tool with exactly the same arguments, once.",
		Schema: text(`{
	"type": "object",
	"properties": {
		"action": {"type": "string", "minLength": 1, "maxLength": 1024, "description": "What you want to do and why, for the person who decides"},
		"targetTool": {"type": "string", "minLength": 1, "description": "Name of the tool that you want to call; it must be one that needs approval"},
		"targetArguments": {"type": "object", "description": "The exact arguments of that call. The approval is for these and no others"},
		"riskSummary": {"type": "string", "maxLength": 1024, "description": "What could go wrong"},
		"severity": {"type": "string", "enum": ["warning", "critical"], "default": "warning", "description": "How bad that would be"}
	},
	"required": ["action", "targetTool", "targetArguments"],
	"additionalProperties": false
}`),
		In: Runs, Effects: Writes, Automatic: Autonomous,
	}
)

// PlanArguments are the arguments of update_plan.
type PlanArguments struct {
	Summary      string `json:"summary" desc:"How far the work is, in a sentence" minLength:"1" maxLength:"4096"`
	PlanDocument string `json:"plan_document" desc:"The whole plan in Markdown: what is done, what was found, and what is to be done next. It replaces the plan that was stored before" minLength:"1" maxLength:"32768"`
	ProgressPct  *int32 `json:"progress_pct,omitempty" desc:"How much of the work is done, in percent" minimum:"0" maximum:"100"`
	GoalComplete bool   `json:"goal_complete,omitempty" desc:"true if the goal is reached and nothing is left to do"`
}
