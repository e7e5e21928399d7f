// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package agentloop

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	"github.com/platform-ai/platform/pkg/apis/core/v1alpha1"
	"github.com/platform-ai/platform/pkg/approval"
	"github.com/platform-ai/platform/pkg/llm"
	"github.com/platform-ai/platform/pkg/tool"
)

// ErrApproval ends a run that could not ask for an approval, or could not record that it makes
// an approved call. A gated call is never made without an approval.
var ErrApproval = errors.New("the approval")

// Gate holds back the calls of some tools until a person has approved them. An approval is for
// one call with exactly the arguments that the person was shown. It is used up before that call
// is made: the next call needs another approval, even if its arguments are equal. A Gate is for
// one run and is not safe for concurrent use.
type Gate struct {
	// Names are the tools that need approval.
	Names []string
	// Ask submits a request to the people who decide, and returns their decision. An error ends
	// the run.
	Ask func(ctx context.Context, r ApprovalRequest) (approval.Answer, error)
	// Commit stores an event, and what was recorded before it, before it returns. It stores the
	// start of an approved call, so that a call that may have been made is never reported as not
	// made. If it is nil, the Recorder is used.
	Commit func(ctx context.Context, e *v1alpha1.ExecutionEvent) error

	// Refused, if set, says why no gated call may be made or asked for in this run.
	Refused string

	tools *tool.Catalogue
	// callID is the id of the model's call that is being handled.
	callID string
	// unspent are approvals that request_approval or an earlier run of the task obtained.
	unspent approval.Unspent
	// failed is the error with which Ask failed within request_approval.
	failed error
	// uncertain are the calls whose outcome is unknown, by tool and digest of the arguments.
	uncertain map[string]bool
}

// ApprovalRequest is one call that needs approval.
type ApprovalRequest struct {
	// Tool is the tool as the model knows it.
	Tool tool.Definition
	// CallID is the id of the model's call that waits, which is a call of the tool itself or of request_approval.
	CallID string
	// Arguments is the argument object that the tool will be called with, and
	// ArgsDigest its digest.
	Arguments  json.RawMessage
	ArgsDigest string
	// Action and RiskSummary are the agent's own words; both may be empty.
	Action, RiskSummary string
	// Severity may be empty.
	Severity v1alpha1.EventSeverity
	// Effect is the ToolEffect that the server has reserved for the call; empty for a call without one.
	Effect string
	// Uncertain is set if this run has made the same call before, and nobody knows whether it was carried out.
	Uncertain bool
}

func (g *Gate) gated(name string) bool { return g != nil && slices.Contains(g.Names, name) }

// RequestApproval implements the tool request_approval: it asks before the model makes the
// call, and keeps the approval for that call.
func (g *Gate) RequestApproval(ctx context.Context, r tool.ApprovalRequest) (tool.ApprovalAnswer, error) {
	if !g.gated(r.Tool) {
		e := tool.InvalidArguments("targetTool: %.64q needs no approval", r.Tool)
		if len(g.Names) == 0 {
			return tool.ApprovalAnswer{}, e.Suggest("no tool of this run needs approval: call the tools that you need")
		}
		return tool.ApprovalAnswer{}, e.Suggest("tools that need approval: %v", g.Names)
	}
	q, err := g.request(r.Tool, string(r.Arguments))
	if err != nil {
		return tool.ApprovalAnswer{}, err
	}
	if q.Effect, err = g.tools.Reserve(ctx, q.Tool.Name, q.Arguments); err != nil {
		return tool.ApprovalAnswer{}, err
	}
	q.Action, q.RiskSummary, q.Severity = r.Action, r.RiskSummary, r.Severity
	d, err := g.Ask(ctx, q)
	if err != nil {
		g.failed = err // this ends the run
		return tool.ApprovalAnswer{}, tool.Errorf(tool.TypeUnavailable, "nobody could be asked")
	}
	g.unspent.Keep(r.Tool, q.ArgsDigest, d)
	return tool.ApprovalAnswer{ApprovalID: d.ApprovalID, Decision: d.State, Reason: d.Reason}, nil
}

// Keep adds an approval that an earlier run of the task obtained for one call, and did not use.
func (g *Gate) Keep(toolName, argsDigest string, a approval.Answer) {
	g.unspent.Keep(toolName, argsDigest, a)
}

// request returns the approval request for a call, or a *tool.Error if the call could not be made.
func (g *Gate) request(name, arguments string) (ApprovalRequest, error) {
	if g.Refused != "" {
		return ApprovalRequest{}, tool.Errorf(tool.TypePermissionDenied, "%s needs approval and cannot be called: %s", name, g.Refused).Suggest("continue without it, or end this run with a report")
	}
	raw, err := g.tools.Check(name, arguments)
	if err != nil {
		return ApprovalRequest{}, err
	}
	digest, err := approval.Digest(raw)
	if err != nil {
		return ApprovalRequest{}, tool.InvalidArguments("%v", err)
	}
	d, _ := g.tools.Definition(name)
	return ApprovalRequest{Tool: d, CallID: g.callID, Arguments: raw, ArgsDigest: digest, Uncertain: g.uncertain[name+" "+digest]}, nil
}

// spend returns the decision about a call and uses it up. The error is a *tool.Error if nobody can be asked for this call.
func (g *Gate) spend(ctx context.Context, q ApprovalRequest) (d approval.Answer, err error) {
	if d, ok := g.unspent.Spend(q.Tool.Name, q.ArgsDigest); ok {
		return d, nil
	}
	if q.Effect, err = g.tools.Reserve(ctx, q.Tool.Name, q.Arguments); err != nil {
		return d, err
	}
	return g.Ask(ctx, q)
}

// callGated makes a call that needs approval, or tells the model why it was not made. A call
// that was not made has no start event; the events of its approval say why. said is the text
// that came with the call.
func (l *loop) callGated(ctx context.Context, c llm.ToolCall, said string) (tool.Result, error) {
	g := l.c.Gate
	q, err := g.request(c.Name, c.Arguments)
	if err != nil {
		return l.notMade(c, err), nil
	}
	q.Action = said
	d, err := g.spend(ctx, q)
	if refused, ok := errors.AsType[*tool.Error](err); ok {
		return l.notMade(c, refused), nil
	}
	if err != nil {
		return tool.Result{}, err
	}
	if d.State != v1alpha1.ApprovalApproved {
		return tool.Failure(Refused(c.Name, d)), nil
	}
	if err := l.commitStart(ctx, c, d.ApprovalID); err != nil {
		return tool.Result{}, err
	}
	started := l.c.Clock.Now()
	result := l.c.Tools.Call(tool.WithApproval(ctx, d.ApprovalID), c.Name, string(q.Arguments))
	l.toolEnded(c, d.ApprovalID, result, l.c.Clock.Since(started))
	if result.ErrorType == tool.TypeOutcomeUnknown {
		if g.uncertain == nil {
			g.uncertain = map[string]bool{}
		}
		g.uncertain[c.Name+" "+q.ArgsDigest] = true
	}
	return result, nil
}

// commitStart stores the event that an approved call begins.
func (l *loop) commitStart(ctx context.Context, c llm.ToolCall, approvalID string) error {
	e := l.toolStart(c, approvalID)
	e.AgentName = l.c.AgentName
	if l.c.Gate.Commit == nil {
		l.record(e)
		return nil
	}
	return l.c.Gate.Commit(ctx, e)
}

// gate runs f with the gate's callID set, and turns a failure to ask into an error that ends
// the run.
func (l *loop) gate(c llm.ToolCall, f func() (tool.Result, error)) (tool.Result, error) {
	g := l.c.Gate
	g.tools, g.callID, g.failed = l.c.Tools, c.ID, nil
	result, err := f()
	if err == nil {
		err = g.failed
	}
	if err != nil {
		return tool.Failure(tool.Errorf(tool.TypeCancelled, "the run was stopped")), fmt.Errorf("%w of %s: %w", ErrApproval, c.Name, err)
	}
	return result, nil
}

// Refused tells the model that a call was not made, because people did not approve it.
func Refused(name string, d approval.Answer) *tool.Error {
	switch d.State {
	case v1alpha1.ApprovalExpired:
		return tool.Errorf(tool.TypeApprovalExpired, "nobody approved this call of %s in time; it was not made", name).
			Suggest("go on without it, or say what you cannot do")
	case v1alpha1.ApprovalCancelled:
		e := tool.Errorf(tool.TypeApprovalCancelled, "the request to approve this call of %s was withdrawn; it was not made", name)
		if d.Reason == "" {
			return e.Suggest("go on without it, or say what you cannot do")
		}
		return e.Suggest("the reason: %s; go on without it, or say what you cannot do", d.Reason)
	default:
		e := tool.Errorf(tool.TypeApprovalDeclined, "this call of %s was declined; it was not made", name)
		if d.Reason == "" {
			return e.Suggest("do not repeat it; find another way, or say what you cannot do")
		}
		return e.Suggest("the reason given: %s", d.Reason)
	}
}
