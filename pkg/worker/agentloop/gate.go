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
	"github.com/platform-ai/platform/pkg/worker/tool"
)

// ErrApproval ends a run that could not ask for an approval, or could not store
// that it goes on with one. A gated call is never made without an approval.
var ErrApproval = errors.New("agentloop: approval")

// Gate holds the calls of some tools back until a person has agreed to them. An approval
// is for one call with exactly the arguments that the person was shown, and is
// spent before that call is made: the next one, even with equal arguments, needs
// an approval of its own. A Gate is for one run and is not safe for concurrent use.
type Gate struct {
	// Names are the tools that need approval.
	Names []string
	// Ask brings a request to the people who decide and returns their decision.
	// An error ends the run.
	Ask func(ctx context.Context, r ApprovalRequest) (approval.Answer, error)
	// Commit stores an event, and what was recorded before it, before it returns.
	// The start of an approved call goes through it, so that a call that may have
	// been made is never reported as one that was not. Nil is the Recorder.
	Commit func(ctx context.Context, e *v1alpha1.ExecutionEvent) error

	tools *tool.Catalogue
	// callID is the model's call that is being served.
	callID string
	// unspent are approvals that request_approval obtained.
	unspent approval.Unspent
	// failed is why Ask failed inside of request_approval.
	failed error
}

// ApprovalRequest is one call that needs approval.
type ApprovalRequest struct {
	// Tool is the tool as the model knows it.
	Tool tool.Definition
	// CallID is the model's call that waits: of the tool itself or of request_approval.
	CallID string
	// Arguments is the argument object that the tool will be called with, and
	// ArgsDigest its digest.
	Arguments  json.RawMessage
	ArgsDigest string
	// Action and RiskSummary are the agent's own words; both may be empty.
	Action, RiskSummary string
	// Severity may be empty.
	Severity v1alpha1.EventSeverity
}

func (g *Gate) gated(name string) bool { return g != nil && slices.Contains(g.Names, name) }

// RequestApproval serves the tool request_approval: it asks before the call is
// made, and keeps the approval for it.
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
	q.Action, q.RiskSummary, q.Severity = r.Action, r.RiskSummary, r.Severity
	d, err := g.Ask(ctx, q)
	if err != nil {
		g.failed = err // which ends the run
		return tool.ApprovalAnswer{}, tool.Errorf(tool.TypeUnavailable, "nobody could be asked")
	}
	g.unspent.Keep(r.Tool, q.ArgsDigest, d)
	return tool.ApprovalAnswer{ApprovalID: d.ApprovalID, Decision: d.State, Reason: d.Reason}, nil
}

// request makes the request for a call; an *tool.Error when the call could not be made.
func (g *Gate) request(name, arguments string) (ApprovalRequest, error) {
	raw, err := g.tools.Check(name, arguments)
	if err != nil {
		return ApprovalRequest{}, err
	}
	digest, err := approval.Digest(raw)
	if err != nil {
		// Two readers of such arguments need not read the same.
		return ApprovalRequest{}, tool.InvalidArguments("the arguments are ambiguous: %v", err)
	}
	d, _ := g.tools.Definition(name)
	return ApprovalRequest{Tool: d, CallID: g.callID, Arguments: raw, ArgsDigest: digest}, nil
}

// spend returns the decision about a call and takes it away.
func (g *Gate) spend(ctx context.Context, q ApprovalRequest) (approval.Answer, error) {
	if d, ok := g.unspent.Spend(q.Tool.Name, q.ArgsDigest); ok {
		return d, nil
	}
	return g.Ask(ctx, q)
}

// callGated makes a call that needs approval, or tells the model why not. A call
// that was not made has no start event; the events of its approval say why.
// said is what the model said with the call.
func (l *loop) callGated(ctx context.Context, c llm.ToolCall, said string) (tool.Result, error) {
	g := l.c.Gate
	q, err := g.request(c.Name, c.Arguments)
	if err != nil {
		result := tool.Failure(err)
		l.toolStarted(c)
		l.toolEnded(c, "", result, 0)
		return result, nil
	}
	q.Action = said
	d, err := g.spend(ctx, q)
	if err != nil {
		return tool.Result{}, err
	}
	if d.State != v1alpha1.ApprovalApproved {
		return tool.Failure(refused(c.Name, d)), nil
	}
	if err := l.commitStart(ctx, c, d.ApprovalID); err != nil {
		return tool.Result{}, err
	}
	started := l.c.Clock.Now()
	result := l.c.Tools.Call(tool.WithApproval(ctx, d.ApprovalID), c.Name, string(q.Arguments))
	l.toolEnded(c, d.ApprovalID, result, l.c.Clock.Since(started))
	return result, nil
}

// commitStart stores that the call of an approval begins.
func (l *loop) commitStart(ctx context.Context, c llm.ToolCall, approvalID string) error {
	e := l.toolStart(c, approvalID)
	e.AgentName = l.c.AgentName
	if l.c.Gate.Commit == nil {
		l.record(e)
		return nil
	}
	return l.c.Gate.Commit(ctx, e)
}

// gate runs f with the model's call id at hand, and turns a failure to ask into
// one that ends the run.
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

// refused tells the model that a call was not made.
func refused(name string, d approval.Answer) *tool.Error {
	switch d.State {
	case v1alpha1.ApprovalExpired:
		return tool.Errorf(tool.TypeApprovalExpired, "nobody approved this call of %s in time; it was not made", name).
			Suggest("go on without it, or say what you cannot do")
	case v1alpha1.ApprovalCancelled:
		return tool.Errorf(tool.TypeApprovalCancelled, "the request to approve this call of %s was withdrawn; it was not made", name).
			Suggest("go on without it, or say what you cannot do")
	default:
		e := tool.Errorf(tool.TypeApprovalDeclined, "this call of %s was declined; it was not made", name)
		if d.Reason == "" {
			return e.Suggest("do not repeat it; find another way, or say what you cannot do")
		}
		return e.Suggest("the reason given: %s", d.Reason)
	}
}
