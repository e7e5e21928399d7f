// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package memoryproposal

import (
	"strings"

	"github.com/platform-ai/platform/pkg/apis/core/v1alpha1"
	"github.com/platform-ai/platform/pkg/server/registry/resource"
)

// maxCell is the length of a text in a table, in characters.
const maxCell = 60

func columns() []resource.Column[*v1alpha1.MemoryProposal] {
	return []resource.Column[*v1alpha1.MemoryProposal]{
		{Name: "State", Description: "pending, accepted, rejected, applied or archived.", Value: func(p *v1alpha1.MemoryProposal) any { return string(p.Status.State) }},
		{Name: "Type", Description: "What would change.", Value: func(p *v1alpha1.MemoryProposal) any { return string(p.Spec.Type) }},
		{Name: "Title", Description: "What is proposed.", Value: func(p *v1alpha1.MemoryProposal) any { return shorten(p.Spec.Title) }},
		{Name: "Agent", Description: "The agent it is for.", Value: func(p *v1alpha1.MemoryProposal) any { return p.Spec.AgentName }},
		{Name: "Task", Description: "The task it is about.", Value: func(p *v1alpha1.MemoryProposal) any { return p.Spec.TaskName }},
		{Name: "Memory", Wide: true, Description: "The memory that was made of it.", Value: func(p *v1alpha1.MemoryProposal) any { return p.Status.MemoryName }},
		{Name: "Reviewer", Wide: true, Description: "Who reviewed it.", Value: func(p *v1alpha1.MemoryProposal) any { return p.Status.Reviewer }},
		{Name: "Proposed By", Wide: true, Description: "The user name of who proposed it.", Value: func(p *v1alpha1.MemoryProposal) any { return p.Status.ProposedBy }},
	}
}

func selectable() []resource.Field[*v1alpha1.MemoryProposal] {
	return []resource.Field[*v1alpha1.MemoryProposal]{
		{Path: "spec.type", Value: func(p *v1alpha1.MemoryProposal) string { return string(p.Spec.Type) }},
		{Path: "spec.agentName", Value: func(p *v1alpha1.MemoryProposal) string { return p.Spec.AgentName }},
		{Path: "spec.taskName", Value: func(p *v1alpha1.MemoryProposal) string { return p.Spec.TaskName }},
		{Path: "taskName", Value: func(p *v1alpha1.MemoryProposal) string { return p.Spec.TaskName }}, // as in all kinds
		{Path: "status.state", Value: func(p *v1alpha1.MemoryProposal) string { return string(p.Status.State) }},
		{Path: "status.origin.taskName", Value: func(p *v1alpha1.MemoryProposal) string { return originOf(p).TaskName }},
		{Path: "status.origin.taskUID", Value: func(p *v1alpha1.MemoryProposal) string { return string(originOf(p).TaskUID) }},
	}
}

func originOf(p *v1alpha1.MemoryProposal) v1alpha1.MemoryOrigin {
	if p.Status.Origin == nil {
		return v1alpha1.MemoryOrigin{}
	}
	return *p.Status.Origin
}

// shorten returns the beginning of a text on one line.
func shorten(s string) string {
	runes := []rune(strings.Join(strings.Fields(s), " "))
	if len(runes) <= maxCell {
		return string(runes)
	}
	return string(runes[:maxCell-1]) + "…"
}
