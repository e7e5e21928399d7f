// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package tool

import (
	"context"
	"encoding/json"

	"github.com/platform-ai/platform/pkg/apis/core/v1alpha1"
)

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

// Reserver is a tool whose calls change something elsewhere. Before people are asked to approve one, the server keeps its effect.
type Reserver interface {
	// Reserve returns the name of the ToolEffect of a call; empty if it needs none. A call that cannot be made is refused with an *Error.
	Reserve(ctx context.Context, arguments json.RawMessage) (effect string, err error)
}

type approvalKey struct{}

// WithApproval returns a context with the id of the approval of the call.
func WithApproval(ctx context.Context, id string) context.Context {
	return context.WithValue(ctx, approvalKey{}, id)
}

// ApprovalOf returns the id of the approval of the call in ctx; empty for a call that needed
// none. An approval is used for one call only, so a server can recognise a repeated request by
// the id.
func ApprovalOf(ctx context.Context) string {
	id, _ := ctx.Value(approvalKey{}).(string)
	return id
}
