// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

// Package toolkit is what the tools of runs are made from: what a run gives to them, how they are bound to the catalogue, and what
// several of them do with the answers of strangers.
package toolkit

import (
	"context"
	"regexp"

	"k8s.io/utils/clock"

	"github.com/platform-ai/platform/pkg/apis/core/v1alpha1"
	"github.com/platform-ai/platform/pkg/tool"
	"github.com/platform-ai/platform/pkg/tool/builtin"
	"github.com/platform-ai/platform/pkg/worker/client"
	"github.com/platform-ai/platform/pkg/worker/sandbox"
)

// Tool is the code of a tool of the catalogue. Each tool's package exports one, and package tools lists them.
type Tool struct {
	Of *builtin.Tool
	// New makes the tool for a run. A *tool.RefusedError says why the run cannot have the tool.
	New func(Given) (tool.Tool, error)
}

// Given is what a built-in tool may use.
type Given struct {
	// WorkDir, TempDir and ArtifactsDir are the run's folders. ArtifactsDir may be empty.
	WorkDir, TempDir, ArtifactsDir string
	// HomeDir is the home folder of programs; empty for WorkDir.
	HomeDir string
	// Path is the search path for programs. Env holds the environment variables that describe the run to them.
	Path string
	Env  []string
	// Policy is what programs may reach, and Limits bound each of them; zero
	// fields have defaults.
	Policy sandbox.Policy
	Limits sandbox.Limits
	// FetchAllow lists host:port that may be fetched from although their addresses are private.
	FetchAllow []string
	// SearchURL is the URL of the search service, empty for none. SearchKey is its key.
	SearchURL, SearchKey string
	// API, Task and Attempt are for tools that work on the run's own task; the token in API is the run's.
	API     *client.API
	Task    *v1alpha1.Task
	Attempt int
	Clock   clock.Clock
	// Heads is what the run has seen of pull requests. Its tools share it; with nil, each tool knows what it has seen itself.
	Heads *Heads
	// ChildToken returns a transaction token for a child of the task; nil if children get none. Its error is one of package
	// tokenexchange, or that of ctx.
	ChildToken func(ctx context.Context) (string, error)
	// Ask asks people to approve a call, and returns their decision.
	Ask func(ctx context.Context, r tool.ApprovalRequest) (tool.ApprovalAnswer, error)
	// Recall finds memories of the task's scope, Propose proposes one, and SearchTranscript finds messages that the task
	// may read.
	Recall           RecallFunc
	Propose          ProposeFunc
	SearchTranscript SearchTranscriptFunc
	// UpdatePlan stores the plan of the run's task in place of the one before. A *tool.Error is shown to the model.
	UpdatePlan func(ctx context.Context, p *v1alpha1.TaskPlan) error
}

// Functions of the memory tools. A *tool.Error is shown to the model.
type (
	// RecallFunc finds memories.
	RecallFunc = func(ctx context.Context, spec v1alpha1.MemorySearchSpec) ([]v1alpha1.MemoryMatch, error)
	// ProposeFunc proposes a memory.
	ProposeFunc = func(ctx context.Context, spec v1alpha1.MemoryProposalSpec) (*v1alpha1.MemoryProposal, error)
	// SearchTranscriptFunc finds messages of sessions.
	SearchTranscriptFunc = func(ctx context.Context, spec v1alpha1.TranscriptSearchSpec) ([]v1alpha1.TranscriptMatch, error)
)

// traceparent matches the header of W3C Trace Context, version 00.
var traceparent = regexp.MustCompile(`^00-[0-9a-f]{32}-[0-9a-f]{16}-[0-9a-f]{2}$`)

// Traceparent returns the W3C trace context of a task, which requests of its tools carry; empty if there is no valid one.
func Traceparent(t *v1alpha1.Task) string {
	s := t.Annotations[v1alpha1.AnnotationTraceparent]
	if !traceparent.MatchString(s) {
		return ""
	}
	return s
}
