// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

// Package approval provides the tool request_approval, with which an agent asks a person to
// approve one exact call before it makes the call.
package approval

import (
	"context"
	"encoding/json"
	"strings"

	"github.com/platform-ai/platform/pkg/apis/core/v1alpha1"
	"github.com/platform-ai/platform/pkg/tool"
	"github.com/platform-ai/platform/pkg/tool/builtin"
	"github.com/platform-ai/platform/pkg/worker/toolkit"
)

// Builtin is the tool request_approval.
var Builtin = toolkit.Tool{Of: builtin.RequestApproval, New: func(g toolkit.Given) (tool.Tool, error) { return New(g.Ask), nil }}

// Func asks for an approval, and returns when it is decided. The tool fills in the answer's
// Status. A *tool.Error is shown to the model.
type Func = func(ctx context.Context, r tool.ApprovalRequest) (tool.ApprovalAnswer, error)

// arguments of request_approval.
type arguments struct {
	Action          string          `json:"action"`
	TargetTool      string          `json:"targetTool"`
	TargetArguments json.RawMessage `json:"targetArguments"`
	RiskSummary     string          `json:"riskSummary"`
	Severity        string          `json:"severity"`
}

type requestTool struct{ ask Func }

var _ tool.Tool = requestTool{}

// New makes the tool.
func New(ask Func) tool.Tool { return requestTool{ask} }

func (requestTool) Definition() tool.Definition { return builtin.RequestApproval.Definition() }

// Call waits as long as the decision takes.
func (t requestTool) Call(ctx context.Context, raw json.RawMessage) (any, error) {
	var a arguments
	if err := json.Unmarshal(raw, &a); err != nil {
		return nil, tool.InvalidArguments("%v", err)
	}
	if strings.TrimSpace(a.Action) == "" {
		return nil, tool.InvalidArguments("action: must say what you want to do")
	}
	severity := v1alpha1.SeverityWarning
	if a.Severity == "critical" {
		severity = v1alpha1.SeverityCritical
	}
	answer, err := t.ask(ctx, tool.ApprovalRequest{
		Action: a.Action, Tool: a.TargetTool, Arguments: a.TargetArguments, RiskSummary: a.RiskSummary, Severity: severity,
	})
	if err != nil {
		return nil, err
	}
	answer.Status = status(answer.Decision, a.TargetTool)
	return answer, nil
}

func status(s v1alpha1.ApprovalState, target string) string {
	switch s {
	case v1alpha1.ApprovalApproved:
		return "approved for one call: call " + target + " now, with exactly these arguments"
	case v1alpha1.ApprovalExpired:
		return "nobody decided in time: do not make this call"
	case v1alpha1.ApprovalCancelled:
		return "the request was withdrawn: do not make this call"
	default:
		return "declined: do not make this call; find another way, or say what you cannot do"
	}
}
