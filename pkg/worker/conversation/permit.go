// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package conversation

import (
	"context"
	"errors"
	"strings"
	"sync"
	"sync/atomic"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"

	"github.com/platform-ai/platform/pkg/agentloop"
	"github.com/platform-ai/platform/pkg/apis/core/v1alpha1"
	"github.com/platform-ai/platform/pkg/approval"
	"github.com/platform-ai/platform/pkg/plan"
	"github.com/platform-ai/platform/pkg/tool"
	"github.com/platform-ai/platform/pkg/worker/acp"
	"github.com/platform-ai/platform/pkg/worker/asking"
	"github.com/platform-ai/platform/pkg/worker/runner"
	"github.com/platform-ai/platform/pkg/worker/runtools"
)

// maxJudged is how many calls are put to the policies at once.
const maxJudged = 8

// desk decides which calls may be made.
type desk struct {
	approvals *asking.Approvals
	// judging limits the calls that are put to the policies at once.
	judging chan struct{}
	// life ends when the agent has ended. An approval waits as long for its decision, even if its call is given up.
	life context.Context //nolint:containedctx // of what outlives the request that began it
	stop context.CancelFunc
	// asking are the approvals that are asked for, and broken is set once that has failed.
	asking sync.WaitGroup
	broken atomic.Bool
	// starting is held while the start of an approved call is being stored. It is locked before the mutex of calls.
	starting sync.Mutex
}

// open makes the desk of a run.
func (d *desk) open(ctx context.Context, r *runner.Run, p *plan.Plan) {
	d.approvals, d.judging = &asking.Approvals{Run: r, Timeout: p.ApprovalTimeout, Objects: runtools.Objects(p)}, make(chan struct{}, maxJudged)
	d.life, d.stop = context.WithCancel(ctx)
}

// close gives up what is being asked.
func (d *desk) close() {
	d.stop()
	d.asking.Wait()
}

// Permit implements acp.Handler.
func (t *Talk) Permit(r acp.Request) func(context.Context) acp.Permission {
	if t.platform.offers(r.Call) {
		return func(context.Context) acp.Permission { return acp.Permission{Allowed: true} }
	}
	place := t.desk.approvals.Place()
	t.mu.Lock()
	before := t.open[r.Call.ID]
	if before != nil {
		before.accepted[bind(before.Call).digest] = true
	}
	k := t.find(r.Call)
	k.accepted[bind(r.Call).digest] = true
	k.deciding++
	t.mu.Unlock()
	return func(ctx context.Context) acp.Permission {
		once, why := t.settle(ctx, k, r, place)
		if why != nil {
			t.Log.Line("%s: not permitted: %s", r.Call.Name(), why.Message)
			return acp.Permission{Reason: reason(why)}
		}
		t.Log.Line("%s: permitted", r.Call.Name())
		return acp.Permission{Allowed: true, Once: once}
	}
}

// reason says why a call may not be made, and what to do.
func reason(e *tool.Error) string {
	if e.Suggestion == "" {
		return e.Message
	}
	return e.Message + "; " + e.Suggestion
}

// decide returns the id of the approval of a call that may be made; empty if it needs none. It leaves the place, or asks people there.
func (t *Talk) decide(ctx context.Context, place *asking.Place, r acp.Request) (approvalID string, err error) {
	b, gated, err := t.check(ctx, r.Call)
	if err == nil && gated && !r.Once {
		err = tool.Errorf(tool.TypePermissionDenied, "each call of this tool needs an approval, and the coding agent does not offer to have one call allowed")
	}
	if err != nil || !gated {
		place.Leave()
		return "", err
	}
	d, err := t.ask(ctx, place, r.Call, b)
	if err != nil {
		return "", err
	}
	if d.State != v1alpha1.ApprovalApproved {
		return "", agentloop.Refused(r.Call.Name(), d)
	}
	return d.ApprovalID, nil
}

// check applies the rules and the policies to a call, and reports whether people decide about it.
func (t *Talk) check(ctx context.Context, c *acp.Call) (b bound, gated bool, err error) {
	switch why := t.rules.refuse(c); {
	case c.Ended:
		return b, false, tool.Errorf(tool.TypePermissionDenied, "the call has ended")
	case why != "":
		return b, false, tool.Errorf(tool.TypePermissionDenied, "%s", why)
	}
	if b = bind(c); b.err != nil {
		return b, false, tool.InvalidArguments("the arguments cannot be checked: %v", b.err)
	}
	select {
	case t.desk.judging <- struct{}{}:
	case <-ctx.Done():
		return b, false, ctx.Err()
	}
	verdict, err := asking.Policies(ctx, t.Run, v1alpha1.ToolCallSpec{
		ToolName: c.Name(), Kind: c.Kind, CallID: c.ID, Arguments: &apiextensionsv1.JSON{Raw: b.arguments},
	})
	<-t.desk.judging
	if err == nil && verdict.Verdict == v1alpha1.ToolCallDenied {
		err = agentloop.Denied(c.Name(), verdict.Findings)
	}
	return b, t.rules.gates(c) || verdict.Verdict == v1alpha1.ToolCallApprovalRequired, err
}

// ask asks people about a call of the agent's own tools.
func (t *Talk) ask(ctx context.Context, place *asking.Place, c *acp.Call, b bound) (approval.Answer, error) {
	return t.desk.ask(ctx, place, agentloop.ApprovalRequest{
		Tool: tool.Definition{Name: c.Name(), Description: "a tool of kind " + c.Kind + " that the coding agent has of its own"}, CallID: c.ID,
		Arguments: b.arguments, ArgsDigest: b.digest, Action: t.Scrub(strings.TrimSpace(c.Title)), RiskSummary: b.note,
	})
}

// ask asks people. If ctx ends after they were asked, their decision has no effect. Once it fails, nobody is asked any more in this run:
// approvals for which nothing waits would pile up.
func (d *desk) ask(ctx context.Context, place *asking.Place, r agentloop.ApprovalRequest) (approval.Answer, error) {
	if d.broken.Load() {
		place.Leave()
		return approval.Answer{}, errors.New("asking people has failed before")
	}
	type result struct {
		approval.Answer
		err error
	}
	got := make(chan result, 1)
	d.asking.Go(func() {
		answer, err := place.Ask(d.life, ctx.Done(), r) //nolint:contextcheck // what is asked outlives the request for it
		if err != nil && !errors.Is(err, asking.ErrUnwanted) {
			d.broken.Store(true)
		}
		got <- result{answer, err}
	})
	select {
	case a := <-got:
		return a.Answer, a.err
	case <-ctx.Done():
		return approval.Answer{}, ctx.Err()
	}
}

// settle decides about a call, and notes what was decided. The start of an approved call is stored before settle returns. once is set
// if the permission is for this call alone, and why if it is refused.
func (t *Talk) settle(ctx context.Context, k *call, r acp.Request, place *asking.Place) (once bool, why *tool.Error) {
	id, err := t.decide(ctx, place, r)
	if id != "" {
		t.desk.starting.Lock()
		defer t.desk.starting.Unlock()
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	k.deciding--
	if k.refusal = t.refusal(ctx, err); k.refusal == nil && k.Ended {
		k.refusal = tool.Errorf(tool.TypePermissionDenied, "the call has ended")
	}
	if k.permitted = nil; k.refusal != nil {
		return false, k.refusal
	}
	if id != "" {
		return true, t.startApproved(ctx, k, r.Call, id)
	}
	k.permitted = r.Call
	if k.announced && !k.begun {
		t.begin(k, map[string]any{})
	}
	return false, nil
}

// refusal returns why a call may not be made; nil if it may.
func (t *Talk) refusal(ctx context.Context, err error) *tool.Error {
	failed, known := errors.AsType[*tool.Error](err)
	switch {
	case ctx.Err() != nil || t.desk.life.Err() != nil:
		return tool.Errorf(tool.TypeCancelled, "the request was cancelled")
	case known:
		return failed
	case err != nil:
		t.Log.Line("nobody can be asked: %v", err)
		return tool.Errorf(tool.TypeUnavailable, "nobody could be asked whether the call may be made, so it was not made")
	}
	return nil
}

// startApproved stores that an approved call begins, and permits it as the agent described it when it asked. The caller holds mu, which
// is released meanwhile.
func (t *Talk) startApproved(ctx context.Context, k *call, asked *acp.Call, id string) *tool.Error {
	if k.begun {
		t.end(k, tool.TypeApprovalRequired, map[string]any{})
	}
	k.approvalID, k.written, k.starting = id, map[string]bool{}, true
	e := t.start(k, asked.Name(), map[string]any{})
	t.mu.Unlock()
	err := t.Recorder.Commit(ctx, e)
	t.mu.Lock()
	k.starting = false
	if err == nil {
		k.permitted = asked
	} else {
		k.refusal = tool.Errorf(tool.TypeUnavailable, "the start of the call could not be stored, so it was not made")
		t.Log.Line("the start of an approved call could not be stored: %v", err)
	}
	if k.Ended {
		t.close(k)
	}
	return k.refusal
}
