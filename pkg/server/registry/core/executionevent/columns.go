// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package executionevent

import (
	"github.com/platform-ai/platform/pkg/apis/core/v1alpha1"
	"github.com/platform-ai/platform/pkg/server/registry/resource"
)

func columns() []resource.Column[*v1alpha1.ExecutionEvent] {
	return []resource.Column[*v1alpha1.ExecutionEvent]{
		{Name: "Seq", Type: "integer", Description: "The place of the event in its stream.", Value: func(e *v1alpha1.ExecutionEvent) any { return e.Seq }},
		{Name: "Type", Description: "What happened.", Value: func(e *v1alpha1.ExecutionEvent) any { return string(e.Type) }},
		{Name: "Severity", Description: "How much it matters.", Value: func(e *v1alpha1.ExecutionEvent) any { return string(e.Severity) }},
		{Name: "Task", Description: "The task that the event describes.", Value: func(e *v1alpha1.ExecutionEvent) any { return e.TaskName }},
		{Name: "Session", Description: "The session of the task.", Value: func(e *v1alpha1.ExecutionEvent) any { return e.SessionName }},
		{Name: "Tool", Description: "The tool that it concerns.", Value: func(e *v1alpha1.ExecutionEvent) any { return e.ToolName }},
		{Name: "Summary", Description: "One line for people.", Value: func(e *v1alpha1.ExecutionEvent) any { return e.Summary }},
		{Name: "Agent", Wide: true, Description: "The agent that acted.", Value: func(e *v1alpha1.ExecutionEvent) any { return e.AgentName }},
		{Name: "Call", Wide: true, Description: "What correlates the events of one tool call.", Value: func(e *v1alpha1.ExecutionEvent) any { return e.ToolCallID }},
		{Name: "Model", Wide: true, Description: "The model that was asked.", Value: func(e *v1alpha1.ExecutionEvent) any { return e.Model }},
	}
}
