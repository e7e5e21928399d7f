// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package remoteagent

import (
	"cmp"
	"context"
	"fmt"
	"sync"

	"github.com/platform-ai/platform/pkg/clip"
	"github.com/platform-ai/platform/pkg/harness"
	"github.com/platform-ai/platform/pkg/worker/acp"
)

// maxExplained is how much of the reason of a refusal an agent is told, in bytes.
const maxExplained = 1000

// translator makes events and requests of package acp of what a runtime sends.
type translator struct {
	*run
	// life ends when the prompt is given up.
	life  context.Context //nolint:containedctx // that of one prompt
	calls map[string]*acp.Call
	// asking are the permissions that are being decided on.
	asking sync.WaitGroup

	mu        sync.Mutex
	questions map[string]*question
}

// question is a permission that the agent asks for.
type question struct {
	withdraw context.CancelFunc
	// answer is what the runtime is told; empty before that.
	answer harness.Decision
}

func newTranslator(life context.Context, r *run) *translator {
	return &translator{run: r, life: life, calls: map[string]*acp.Call{}, questions: map[string]*question{}}
}

// close gives up what is being decided.
func (t *translator) close() {
	t.mu.Lock()
	for _, q := range t.questions {
		q.withdraw()
	}
	t.mu.Unlock()
	t.asking.Wait()
}

// read reads a stream to its end, and returns the result, or why there is none.
func (t *translator) read(s *harness.Stream) (*harness.Result, error) {
	for {
		e, err := s.Next()
		if err != nil {
			return nil, err
		}
		if e.Result != nil {
			return e.Result, nil
		}
		if err := t.take(e); err != nil {
			return nil, err
		}
	}
}

// take takes one event.
func (t *translator) take(e *harness.Event) error {
	switch e.Type {
	case harness.EventMessage:
		t.talk.Event(acp.Event{Kind: acp.Message, Text: e.Text, MessageID: e.MessageID})
	case harness.EventThought:
		t.talk.Event(acp.Event{Kind: acp.Thought, Text: e.Text, MessageID: e.MessageID})
	case harness.EventCallStarted, harness.EventCallChanged, harness.EventCallEnded:
		kinds := map[harness.EventType]acp.EventKind{harness.EventCallStarted: acp.CallStarted, harness.EventCallChanged: acp.CallChanged, harness.EventCallEnded: acp.CallEnded}
		t.talk.Event(acp.Event{Kind: kinds[e.Type], Call: t.call(e.Call, true, e.Type == harness.EventCallEnded)})
	case harness.EventPlanChanged:
		steps := []acp.Step{}
		for _, s := range e.Plan {
			steps = append(steps, acp.Step{Text: s.Text, Status: s.Status})
		}
		t.talk.Event(acp.Event{Kind: acp.PlanChanged, Plan: steps})
	case harness.EventModeChanged:
		t.talk.Event(acp.Event{Kind: acp.ModeChanged, Mode: e.Mode})
	case harness.EventCommandsChanged:
		t.talk.Event(acp.Event{Kind: acp.CommandsChanged, Commands: e.Commands})
	case harness.EventContextChanged:
		t.talk.Event(acp.Event{Kind: acp.ContextChanged, Used: e.Context.Used, Size: e.Context.Size})
	case harness.EventPermissionRequested:
		t.requested(e.Permission)
	case harness.EventPermissionSettled:
		return t.settled(e.Permission)
	case harness.EventAccepted, harness.EventAlive, harness.EventResult: // the stream has checked them
	}
	return nil
}

// call returns a call as it is described now. What an event leaves out stays as it was.
func (t *translator) call(c *harness.Call, running, ended bool) *acp.Call {
	now := &acp.Call{ID: c.ID, Kind: acp.KindOther}
	if before := t.calls[c.ID]; before != nil {
		copied := *before
		now = &copied
	}
	now.Title, now.Kind, now.Tool = cmp.Or(c.Title, now.Title), cmp.Or(c.Kind, now.Kind), cmp.Or(c.Tool, now.Tool)
	if len(c.Arguments) > 0 || c.ArgumentBytes > 0 {
		now.Arguments, now.ArgumentBytes = c.Arguments, max(int(c.ArgumentBytes), len(c.Arguments))
	}
	now.ResultBytes = max(now.ResultBytes, int(c.ResultBytes))
	if len(c.Paths) > 0 {
		now.Paths = c.Paths
	}
	if len(c.Diffs) > 0 {
		now.Diffs = nil
		for _, d := range c.Diffs {
			now.Diffs = append(now.Diffs, acp.Diff{Path: d.Path, Created: d.Created, Bytes: int(d.Bytes)})
		}
	}
	now.Running, now.Ended, now.Failed = now.Running || running, now.Ended || ended, now.Failed || c.Failed
	t.calls[c.ID] = now
	return now
}

// requested has the question decided, and the runtime told.
func (t *translator) requested(p *harness.Permission) {
	ctx, withdraw := context.WithCancel(t.life)
	q := &question{withdraw: withdraw}
	t.mu.Lock()
	t.questions[p.ID] = q
	t.mu.Unlock()
	decide := t.talk.Permit(acp.Request{Call: t.call(p.Call, false, false), Once: true})
	t.asking.Go(func() {
		defer withdraw()
		decision := decide(ctx)
		answer := harness.PermissionAnswer{Decision: harness.Deny, ArgumentsDigest: p.ArgumentsDigest, Message: clip.Marked(decision.Reason, maxExplained)}
		if decision.Allowed {
			answer.Decision, answer.Message = harness.Allow, ""
		}
		t.mu.Lock()
		q.answer = answer.Decision
		t.mu.Unlock()
		if ctx.Err() != nil { // nobody wants to know
			return
		}
		err := t.again(ctx, func(ctx context.Context) error {
			return t.session.Answer(ctx, t.operationFor("permission", p.ID), promptID, p.ID, answer)
		})
		if err != nil && ctx.Err() == nil {
			t.Log.Line("the runtime did not take a decision: %v", err)
		}
	})
}

// settled notes what holds for a question. Nobody but the platform may allow something.
func (t *translator) settled(p *harness.Permission) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	q := t.questions[p.ID]
	if q == nil { // it was asked before what is kept
		return nil
	}
	if p.Decision == harness.Allow && q.answer != harness.Allow {
		return fmt.Errorf("%w: a permission is settled as allowed, and nobody has allowed it", harness.ErrProtocol)
	}
	q.withdraw()
	return nil
}
