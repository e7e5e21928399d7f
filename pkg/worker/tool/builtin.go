// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package tool

import (
	"context"
	"encoding/json"

	"k8s.io/utils/clock"

	"github.com/platform-ai/platform/pkg/apis/core/v1alpha1"
	"github.com/platform-ai/platform/pkg/worker/client"
	"github.com/platform-ai/platform/pkg/worker/sandbox"
)

// Builtin is a tool that needs no Tool object. Each tool's package exports one, and package
// builtin lists them.
type Builtin struct {
	Name string
	// Unlisted is set for tools of coordination, which are not in the list of tools that users choose from.
	Unlisted bool
	// Describe defines the tool where there is no run, and so New cannot. If it is nil, New makes the tool from nothing.
	Describe func() Definition
	// New makes the tool for a run. A *RefusedError says why the run cannot have the tool.
	New func(Given) (Tool, error)
}

// Given is what a built-in tool may use.
type Given struct {
	// WorkDir, TempDir and ArtifactsDir are the run's folders. ArtifactsDir may be empty.
	WorkDir, TempDir, ArtifactsDir string
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
	// ChildToken returns a transaction token for a child of the task; nil if children get none. Its error is one of package
	// tokenexchange, or that of ctx.
	ChildToken func(ctx context.Context) (string, error)
	// Ask asks people to approve a call, and returns their decision.
	Ask func(ctx context.Context, r ApprovalRequest) (ApprovalAnswer, error)
	// Recall finds memories of the task's scope, Propose proposes one, and SearchTranscript finds messages that the task
	// may read.
	Recall           RecallFunc
	Propose          ProposeFunc
	SearchTranscript SearchTranscriptFunc
	// UpdatePlan stores the plan of the run's task in place of the one before. A *Error is shown to the model.
	UpdatePlan func(ctx context.Context, p *v1alpha1.TaskPlan) error
}

// Functions of the memory tools. A *Error is shown to the model.
type (
	// RecallFunc finds memories.
	RecallFunc = func(ctx context.Context, spec v1alpha1.MemorySearchSpec) ([]v1alpha1.MemoryMatch, error)
	// ProposeFunc proposes a memory.
	ProposeFunc = func(ctx context.Context, spec v1alpha1.MemoryProposalSpec) (*v1alpha1.MemoryProposal, error)
	// SearchTranscriptFunc finds messages of sessions.
	SearchTranscriptFunc = func(ctx context.Context, spec v1alpha1.TranscriptSearchSpec) ([]v1alpha1.TranscriptMatch, error)
)

// RefusedError says why a run cannot have a tool.
type RefusedError struct {
	// Reason is one of the reasons of package v1alpha1.
	Reason string
	// Retry is set if another attempt of the task may get the tool.
	Retry bool
	Err   error
}

// Error returns the text of the cause.
func (r *RefusedError) Error() string { return r.Err.Error() }

// Unwrap returns the cause.
func (r *RefusedError) Unwrap() error { return r.Err }

// ApprovalRequest is what a model asks people to approve.
type ApprovalRequest struct {
	// Action describes what is to be done.
	Action string
	// Tool and Arguments are the call that is to be approved. The arguments are a JSON object. Ask
	// must check whether they fit the tool.
	Tool      string
	Arguments json.RawMessage
	// RiskSummary says what could go wrong; it may be empty.
	RiskSummary string
	// Severity is warning or critical.
	Severity v1alpha1.EventSeverity
}

// ApprovalAnswer is the decision. It is the result that the model reads.
type ApprovalAnswer struct {
	ApprovalID string                 `json:"approvalID"`
	Decision   v1alpha1.ApprovalState `json:"decision"`
	// Reason is the deciding person's own words.
	Reason string `json:"reason,omitempty"`
	// Status tells the model what to do now.
	Status string `json:"status"`
}
