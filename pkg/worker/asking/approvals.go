// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

// Package asking asks whether a call of a run may be made: the server's policies (Policies), and people (Approvals).
//
// A request to people is an event of the task. It is stored before anything waits, and the decision is read from the approval that
// the server derives from it. Several calls may wait at once. Their requests reach people in the order in which the calls took their
// places, and only so many at a time: the others wait here, because the server refuses a task that floods people.
package asking

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/platform-ai/platform/pkg/agentloop"
	"github.com/platform-ai/platform/pkg/apis/core/v1alpha1"
	"github.com/platform-ai/platform/pkg/approval"
	"github.com/platform-ai/platform/pkg/tool"
	"github.com/platform-ai/platform/pkg/worker/runner"
)

// MaxPending is how many approvals of one attempt wait for a decision at once. It is far below approval.MaxPending, which the server
// enforces by refusing everything that the worker sends.
const MaxPending = 64

// ErrUnwanted is the error of a request that was given up before it was stored: nobody was asked.
var ErrUnwanted = errors.New("the request was given up")

// Approvals requests the approvals of one attempt. There is one for a run, because it numbers the requests, and equal calls differ by
// the number. It is safe for concurrent use.
type Approvals struct {
	*runner.Run
	// Timeout is how long a decision may take; 0 means no limit.
	Timeout time.Duration
	// Objects are the Tools that the run calls, by name.
	Objects map[string]*v1alpha1.Tool

	mu sync.Mutex
	// last is closed when the newest place has been left, and all before it; nil if there is no place yet.
	last <-chan struct{}
	// asked counts the requests of this attempt, and pending those without a decision.
	asked, pending int
	// freed, if not nil, is closed when pending becomes smaller.
	freed chan struct{}
}

// Ask stores the request, and only then waits for its decision.
func (a *Approvals) Ask(ctx context.Context, r agentloop.ApprovalRequest) (approval.Answer, error) {
	return a.Place().Ask(ctx, nil, r)
}

// Call describes calls of a tool by this task.
func (a *Approvals) Call(d tool.Definition) approval.Call {
	return approval.Call{
		Namespace: a.Task.Namespace, Task: a.Task.Name, TaskUID: a.Task.UID,
		Tool: d.Name, Description: d.Description, Parameters: d.Parameters, Object: a.Objects[d.Name],
	}
}

// Place is the place of a call in the order in which people are asked. Whoever takes one must call Ask or Leave, or all later calls wait
// for ever.
type Place struct {
	of     *Approvals
	before <-chan struct{}
	left   chan struct{}
	once   sync.Once
}

// Place takes the place after all others.
func (a *Approvals) Place() *Place {
	a.mu.Lock()
	defer a.mu.Unlock()
	p := &Place{of: a, before: a.last, left: make(chan struct{})}
	if p.before == nil {
		first := make(chan struct{})
		close(first)
		p.before = first
	}
	a.last = p.left
	return p
}

// Leave gives up the place. It may be called again, and after Ask.
func (p *Place) Leave() {
	p.once.Do(func() {
		select {
		case <-p.before:
			close(p.left)
		default:
			go func() {
				<-p.before
				close(p.left)
			}()
		}
	})
}

// Ask stores the request when it is the turn of the place, and only then waits for its decision. It is given up if unwanted is closed
// before it is stored; unwanted may be nil. Afterwards it counts as pending until there is a decision, whoever waits for that.
func (p *Place) Ask(ctx context.Context, unwanted <-chan struct{}, r agentloop.ApprovalRequest) (approval.Answer, error) {
	a := p.of
	id, err := p.submit(ctx, unwanted, r)
	if err != nil {
		return approval.Answer{}, err
	}
	defer a.free()
	got, err := a.decided(ctx, id)
	if err != nil {
		return approval.Answer{}, err
	}
	s := got.Status
	a.Log.Line("approval %s of %s: %s %s", id, r.Tool.Name, s.State, s.DecisionReason)
	return approval.Answer{ApprovalID: id, State: s.State, Reason: s.DecisionReason}, nil
}

// submit stores the request, and leaves the place. The request counts as pending if there is no error.
func (p *Place) submit(ctx context.Context, unwanted <-chan struct{}, r agentloop.ApprovalRequest) (id string, err error) {
	defer p.Leave()
	a := p.of
	select {
	case <-p.before:
	case <-unwanted:
		return "", ErrUnwanted
	case <-ctx.Done():
		return "", ctx.Err()
	}
	if err := a.reserve(ctx, unwanted); err != nil {
		return "", err
	}
	if id, err = a.request(ctx, r); err != nil {
		a.free()
	}
	return id, err
}

// request stores the request.
func (a *Approvals) request(ctx context.Context, r agentloop.ApprovalRequest) (id string, err error) {
	risk, err := a.warned(ctx, r.Tool.Name, r.ArgsDigest, r.RiskSummary, r.Uncertain)
	if err != nil {
		return "", err
	}
	a.asked++ // only whose turn it is does this
	c := a.Call(r.Tool)
	c.Attempt, c.Request = a.Attempt, a.asked
	c.ID, c.Arguments, c.ArgsDigest, c.Effect = r.CallID, []byte(a.Scrub(string(r.Arguments))), r.ArgsDigest, r.Effect
	c.Action, c.RiskSummary, c.Severity, c.Timeout = r.Action, risk, r.Severity, a.Timeout
	e, id, err := c.Event()
	if err != nil {
		return "", err
	}
	return id, a.Recorder.Commit(ctx, e)
}

// reserve waits until one more approval may be pending. Only whose turn it is calls it.
func (a *Approvals) reserve(ctx context.Context, unwanted <-chan struct{}) error {
	for {
		a.mu.Lock()
		if a.pending < MaxPending {
			a.pending++
			a.mu.Unlock()
			return nil
		}
		freed := make(chan struct{})
		a.freed = freed
		a.mu.Unlock()
		select {
		case <-freed:
		case <-unwanted:
			return ErrUnwanted
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// free undoes reserve.
func (a *Approvals) free() {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.pending--
	if a.freed != nil {
		close(a.freed)
		a.freed = nil
	}
}
