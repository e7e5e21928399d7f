// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

// Package memory provides the tools with which an agent recalls memories, proposes new ones, and searches the
// transcripts that its task may read. An agent only proposes: a person reviews and applies.
package memory

import (
	"context"
	"strings"

	"github.com/platform-ai/platform/pkg/apis/core/v1alpha1"
	"github.com/platform-ai/platform/pkg/redact"
	"github.com/platform-ai/platform/pkg/tool"
	"github.com/platform-ai/platform/pkg/tool/builtin"
	"github.com/platform-ai/platform/pkg/worker/toolkit"
)

// RecallBuiltin is the tool recall_memory.
var RecallBuiltin = toolkit.Tool{Of: builtin.RecallMemory, New: func(g toolkit.Given) (tool.Tool, error) {
	return tool.New(builtin.RecallMemory.Definition(),
		func(ctx context.Context, a builtin.RecallArguments) (any, error) { return recall(ctx, g.Recall, a) }), nil
}}

// RememberBuiltin is the tool remember.
var RememberBuiltin = toolkit.Tool{Of: builtin.Remember, New: func(g toolkit.Given) (tool.Tool, error) {
	return tool.New(builtin.Remember.Definition(),
		func(ctx context.Context, a builtin.RememberArguments) (any, error) {
			return propose(ctx, g.Propose, remembered(a))
		}), nil
}}

// ProposeBuiltin is the tool propose_memory.
var ProposeBuiltin = toolkit.Tool{Of: builtin.ProposeMemory, New: func(g toolkit.Given) (tool.Tool, error) {
	return tool.New(builtin.ProposeMemory.Definition(),
		func(ctx context.Context, a builtin.ProposeArguments) (any, error) {
			return propose(ctx, g.Propose, proposed(a))
		}), nil
}}

// SearchBuiltin is the tool search_transcript.
var SearchBuiltin = toolkit.Tool{Of: builtin.SearchTranscript, New: func(g toolkit.Given) (tool.Tool, error) {
	return tool.New(builtin.SearchTranscript.Definition(),
		func(ctx context.Context, a builtin.TranscriptArguments) (any, error) {
			return search(ctx, g.SearchTranscript, a)
		}), nil
}}

// Recalled is one memory in the result of recall_memory.
type Recalled struct {
	ID      string   `json:"id"`
	Content string   `json:"content"`
	Tags    []string `json:"tags"`
	Source  string   `json:"source"`
	// Score ranks the memory among the others.
	Score int64 `json:"score"`
	// FromTask and FromSequence are the task that proposed the memory, and the event of its call.
	FromTask     string `json:"from_task,omitempty"`
	FromSequence int64  `json:"from_sequence,omitempty"`
}

// defaultRecall is how many memories are recalled if the model names no number.
const defaultRecall = 10

func recall(ctx context.Context, find toolkit.RecallFunc, a builtin.RecallArguments) (any, error) {
	spec := v1alpha1.MemorySearchSpec{
		Query: a.Query, Tags: a.Tags, TaskName: a.TaskName, AgentName: a.AgentName, Source: a.Source, IncludeDisabled: a.IncludeDisabled,
		Limit: defaultRecall, Recall: true,
	}
	if a.Limit != nil {
		spec.Limit = int32(*a.Limit)
	}
	found, err := find(ctx, spec)
	if err != nil {
		return nil, err
	}
	out := make([]Recalled, len(found))
	for i := range found {
		out[i] = RecalledOf(&found[i])
	}
	return map[string]any{"memories": out}, nil
}

// RecalledOf describes a memory to a model. Memories of older servers may have text that nobody saw.
func RecalledOf(m *v1alpha1.MemoryMatch) Recalled {
	r := Recalled{ID: m.Memory.Name, Content: redact.Visible(m.Memory.Spec.Content), Tags: []string{}, Source: redact.Visible(m.Memory.Spec.Source), Score: m.Score}
	for _, tag := range m.Memory.Spec.Tags {
		r.Tags = append(r.Tags, redact.Visible(tag))
	}
	if o := m.Memory.Status.Origin; o != nil {
		r.FromTask, r.FromSequence = o.TaskName, o.Sequence
	}
	return r
}

func remembered(a builtin.RememberArguments) v1alpha1.MemoryProposalSpec {
	p := v1alpha1.MemoryProposalSpec{
		Title: a.Title, Type: v1alpha1.ProposalMemory, Content: a.Content, Description: a.Description, AgentName: a.AgentName,
	}
	if strings.TrimSpace(p.Title) == "" {
		p.Title = headline(a.Content)
	}
	if len(a.Tags) > 0 { // the first line of tags counts
		p.Description = strings.TrimRight("Tags: "+strings.Join(a.Tags, ", ")+"\n"+p.Description, "\n")
	}
	return p
}

// maxTitle is the length of a title that is taken from a text, in characters.
const maxTitle = 80

func headline(text string) string {
	line, _, _ := strings.Cut(strings.TrimSpace(text), "\n")
	if runes := []rune(line); len(runes) > maxTitle {
		return string(runes[:maxTitle-1]) + "…"
	}
	return line
}

func proposed(a builtin.ProposeArguments) v1alpha1.MemoryProposalSpec {
	return v1alpha1.MemoryProposalSpec{
		Title: a.Title, Type: v1alpha1.MemoryProposalType(a.Type), SkillName: a.SkillName, Description: a.Description, Content: a.Content, Patch: a.Patch,
		AgentName: a.AgentName,
	}
}

func propose(ctx context.Context, send toolkit.ProposeFunc, p v1alpha1.MemoryProposalSpec) (any, error) {
	stored, err := send(ctx, p)
	if err != nil {
		return nil, err
	}
	return map[string]any{"id": stored.Name, "status": stored.Status.State}, nil
}

func search(ctx context.Context, find toolkit.SearchTranscriptFunc, a builtin.TranscriptArguments) (any, error) {
	spec := v1alpha1.TranscriptSearchSpec{Query: a.Query, SessionName: a.SessionName, ExcludeSessionName: a.ExcludeSessionName}
	for _, r := range a.Roles {
		spec.Roles = append(spec.Roles, v1alpha1.MessageRole(r))
	}
	if a.Limit != nil {
		spec.Limit = int32(*a.Limit)
	}
	if a.MaxSnippetLength != nil {
		spec.MaxSnippetLength = int32(*a.MaxSnippetLength)
	}
	found, err := find(ctx, spec)
	if err != nil {
		return nil, err
	}
	return map[string]any{"messages": append([]v1alpha1.TranscriptMatch{}, found...)}, nil
}
