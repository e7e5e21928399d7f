// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package memory

import (
	"strconv"
	"strings"

	"github.com/platform-ai/platform/pkg/apis/core/v1alpha1"
	"github.com/platform-ai/platform/pkg/server/registry/resource"
)

// maxCell is the length of a text in a table, in characters.
const maxCell = 60

func columns() []resource.Column[*v1alpha1.Memory] {
	return []resource.Column[*v1alpha1.Memory]{
		{Name: "Agent", Description: "The only agent whose tasks recall the memory.", Value: func(m *v1alpha1.Memory) any { return m.Spec.AgentName }},
		{Name: "Session", Description: "The only session whose tasks recall the memory.", Value: func(m *v1alpha1.Memory) any { return m.Spec.SessionName }},
		{Name: "State", Description: "Active, Disabled or Deleted.", Value: func(m *v1alpha1.Memory) any { return state(m) }},
		{Name: "Recalled", Type: "integer", Description: "How often the memory was given to a task.", Value: func(m *v1alpha1.Memory) any { return m.Status.RecalledCount }},
		{Name: "Content", Description: "The beginning of the text.", Value: func(m *v1alpha1.Memory) any { return shorten(m.Spec.Content) }},
		{Name: "Tags", Wide: true, Description: "Words to find it by.", Value: func(m *v1alpha1.Memory) any { return strings.Join(m.Spec.Tags, ",") }},
		{Name: "Source", Wide: true, Description: "Where the text came from.", Value: func(m *v1alpha1.Memory) any { return m.Spec.Source }},
		{Name: "Task", Wide: true, Description: "The task whose run proposed it.", Value: func(m *v1alpha1.Memory) any { return originTask(m) }},
	}
}

func fields() []resource.Field[*v1alpha1.Memory] {
	return []resource.Field[*v1alpha1.Memory]{
		{Path: "spec.agentName", Value: func(m *v1alpha1.Memory) string { return m.Spec.AgentName }},
		{Path: "spec.sessionName", Value: func(m *v1alpha1.Memory) string { return m.Spec.SessionName }},
		{Path: "spec.taskName", Value: func(m *v1alpha1.Memory) string { return m.Spec.TaskName }},
		{Path: "taskName", Value: func(m *v1alpha1.Memory) string { return m.Spec.TaskName }}, // as in all kinds
		{Path: "spec.source", Value: func(m *v1alpha1.Memory) string { return m.Spec.Source }},
		{Path: "status.disabled", Value: func(m *v1alpha1.Memory) string { return strconv.FormatBool(m.Status.Disabled) }},
		{Path: "status.deleted", Value: func(m *v1alpha1.Memory) string { return strconv.FormatBool(m.Status.Deleted) }},
		{Path: "status.proposalName", Value: func(m *v1alpha1.Memory) string { return m.Status.ProposalName }},
		{Path: "status.origin.taskName", Value: originTask},
		{Path: "status.origin.taskUID", Value: func(m *v1alpha1.Memory) string {
			if m.Status.Origin == nil {
				return ""
			}
			return string(m.Status.Origin.TaskUID)
		}},
	}
}

func originTask(m *v1alpha1.Memory) string {
	if m.Status.Origin == nil {
		return ""
	}
	return m.Status.Origin.TaskName
}

func state(m *v1alpha1.Memory) string {
	switch {
	case m.Status.Deleted:
		return "Deleted"
	case m.Status.Disabled:
		return "Disabled"
	}
	return "Active"
}

// shorten returns the beginning of a text on one line.
func shorten(s string) string {
	runes := []rune(strings.Join(strings.Fields(s), " "))
	if len(runes) <= maxCell {
		return string(runes)
	}
	return string(runes[:maxCell-1]) + "…"
}
