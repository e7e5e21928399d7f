// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package ai

import (
	"context"
	"fmt"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/platform-ai/platform/pkg/agentloop"
	"github.com/platform-ai/platform/pkg/apis/core/v1alpha1"
	"github.com/platform-ai/platform/pkg/approval"
	"github.com/platform-ai/platform/pkg/plan"
	"github.com/platform-ai/platform/pkg/tool"
	"github.com/platform-ai/platform/pkg/worker/client"
	"github.com/platform-ai/platform/pkg/worker/runner"
)

// gate returns the gate that asks people, through the API, to approve calls of the tools that need it.
func (r *run) gate(p *plan.Plan) (*agentloop.Gate, *Approvals) {
	a := &Approvals{Run: r.Run, Timeout: p.ApprovalTimeout, Objects: objects(p)}
	return &agentloop.Gate{Names: p.Gated, Ask: a.Ask, Commit: r.Recorder.Commit}, a
}

// objects returns the Tools of the plan by their names.
func objects(p *plan.Plan) map[string]*v1alpha1.Tool {
	all := map[string]*v1alpha1.Tool{}
	for _, use := range p.Tools {
		if use.Object != nil {
			all[use.Name] = use.Object
		}
	}
	return all
}

// Approvals requests the approvals of one attempt.
type Approvals struct {
	*runner.Run
	// Timeout is how long a decision may take; 0 means no limit.
	Timeout time.Duration
	// Objects are the Tools that the run calls, by name.
	Objects map[string]*v1alpha1.Tool
	// asked counts the requests of this attempt.
	asked int
}

// Ask stores the request, and only then waits for its decision.
func (a *Approvals) Ask(ctx context.Context, r agentloop.ApprovalRequest) (approval.Answer, error) {
	a.asked++
	risk, err := a.warned(ctx, r.Tool.Name, r.ArgsDigest, r.RiskSummary, r.Uncertain)
	if err != nil {
		return approval.Answer{}, err
	}
	c := a.call(r.Tool)
	c.Attempt, c.Request = a.Attempt, a.asked
	c.ID, c.Arguments, c.ArgsDigest = r.CallID, []byte(a.Scrub(string(r.Arguments))), r.ArgsDigest
	c.Action, c.RiskSummary, c.Severity, c.Timeout = r.Action, risk, r.Severity, a.Timeout
	e, id, err := c.Event()
	if err != nil {
		return approval.Answer{}, err
	}
	if err := a.Recorder.Commit(ctx, e); err != nil {
		return approval.Answer{}, err
	}
	got, err := a.decided(ctx, id)
	if err != nil {
		return approval.Answer{}, err
	}
	s := got.Status
	a.Log.Line("approval %s of %s: %s %s", id, r.Tool.Name, s.State, s.DecisionReason)
	return approval.Answer{ApprovalID: id, State: s.State, Reason: s.DecisionReason}, nil
}

// call describes calls of a tool by this task.
func (a *Approvals) call(d tool.Definition) approval.Call {
	return approval.Call{
		Namespace: a.Task.Namespace, Task: a.Task.Name, TaskUID: a.Task.UID,
		Tool: d.Name, Description: d.Description, Parameters: d.Parameters, Object: a.Objects[d.Name],
	}
}

// Waiting for a decision.
const (
	// watchTime ends a watch before client.RequestTimeout does.
	watchTime = client.RequestTimeout - 10*time.Second
	// firstPause is after a watch that failed. It doubles up to lookPause while watches fail.
	firstPause = 200 * time.Millisecond
	lookPause  = 30 * time.Second
)

// decided waits until the approval has been decided, has expired or was cancelled; the server
// and the controller determine when it expires. It keeps waiting through restarts of the
// server, as every read does. It stops waiting if the approval is deleted or ctx ends.
func (a *Approvals) decided(ctx context.Context, id string) (*v1alpha1.Approval, error) {
	for pause := firstPause; ; {
		got, err := a.API.CoreV1alpha1().Approvals(a.Task.Namespace).Get(ctx, id, metav1.GetOptions{})
		switch {
		case ctx.Err() != nil:
			return nil, ctx.Err()
		case err != nil:
			return nil, fmt.Errorf("approval %s: %w", id, err)
		case got.Status.State != v1alpha1.ApprovalPending:
			return got, nil
		case a.follow(ctx, id):
			pause = firstPause // nothing is wrong
			continue
		}
		if !client.Sleep(ctx, a.Clock, pause) {
			return nil, ctx.Err()
		}
		pause = min(2*pause, lookPause)
	}
}

// follow watches an approval until it is decided or watchTime is over. It reports false if the
// watch failed.
func (a *Approvals) follow(ctx context.Context, id string) bool {
	began, seconds := a.Clock.Now(), int64(watchTime/time.Second)
	w, err := a.API.CoreV1alpha1().Approvals(a.Task.Namespace).Watch(ctx, metav1.ListOptions{
		FieldSelector: "metadata.name=" + id, TimeoutSeconds: &seconds,
	})
	if err != nil {
		return false
	}
	defer w.Stop()
	for e := range w.ResultChan() {
		now, ok := e.Object.(*v1alpha1.Approval)
		switch {
		case !ok:
			return false // an error
		case e.Type == watch.Deleted, e.Type != watch.Bookmark && now.Status.State != v1alpha1.ApprovalPending:
			return true
		}
	}
	return a.Clock.Since(began) >= lookPause
}
