// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package ai

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"slices"
	"time"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/platform-ai/platform/pkg/apis/core/v1alpha1"
	"github.com/platform-ai/platform/pkg/approval"
	"github.com/platform-ai/platform/pkg/worker/agentloop"
	"github.com/platform-ai/platform/pkg/worker/client"
	"github.com/platform-ai/platform/pkg/worker/runner"
	"github.com/platform-ai/platform/pkg/worker/tool"
	request "github.com/platform-ai/platform/pkg/worker/tool/approval"
)

// gate asks people, through the API, about calls of the tools that the agent
// lists in coordination.approvalRequiredTools.
func (r *run) gate(p *plan) *agentloop.Gate {
	a := &Approvals{Run: r.Run}
	g := &agentloop.Gate{Ask: a.Ask, Commit: r.Recorder.Commit}
	if c := p.agent.Coordination; c != nil {
		// Asking needs no leave.
		g.Names = slices.DeleteFunc(slices.Clone(c.ApprovalRequiredTools), func(name string) bool { return name == request.Name })
		if c.ApprovalTimeout != nil {
			a.Timeout = c.ApprovalTimeout.Duration
		}
	}
	return g
}

// Approvals asks for the approvals of one attempt.
type Approvals struct {
	*runner.Run
	// Timeout is how long a decision may take; 0 is without end.
	Timeout time.Duration
	// asked counts the requests of this attempt.
	asked int
}

// Ask stores the request, and only then waits for its decision.
func (a *Approvals) Ask(ctx context.Context, r agentloop.ApprovalRequest) (agentloop.Decision, error) {
	a.asked++
	digest, err := specDigest(r.Tool, a.Attempt, a.asked)
	if err != nil {
		return agentloop.Decision{}, err
	}
	call := sha256.Sum256([]byte(r.CallID))
	spec := v1alpha1.ApprovalSpec{
		TaskName: a.Task.Name, TaskUID: a.Task.UID,
		Action: r.Action, RiskSummary: r.RiskSummary, Severity: r.Severity,
		TargetTool: r.Tool.Name, ToolCallID: r.CallID, TargetArgsDigest: r.ArgsDigest, TargetSpecDigest: digest,
		TargetArgsPreview: &apiextensionsv1.JSON{Raw: approval.Preview([]byte(a.Scrub(string(r.Arguments))))},
		Binding:           &v1alpha1.ApprovalBinding{TaskAttempt: int32(a.Attempt), CallIDDigest: hex.EncodeToString(call[:])},
	}
	if a.Timeout > 0 {
		spec.Timeout = a.Timeout.String() // the server sets the time from it, by its own clock
	}
	e := approval.RequestEvent(a.Task.Namespace, spec)
	id := approval.IDOf(e)
	if err := a.Recorder.Commit(ctx, e); err != nil {
		return agentloop.Decision{}, err
	}
	got, err := a.decided(ctx, id)
	if err != nil {
		return agentloop.Decision{}, err
	}
	s := got.Status
	a.Log.Line("approval %s of %s: %s %s", id, r.Tool.Name, s.State, s.DecisionReason)
	return agentloop.Decision{ApprovalID: id, State: s.State, Reason: s.DecisionReason}, nil
}

// specDigest binds an approval to the tool as the model knows it, and to one
// request of one attempt. So equal calls have different approvals: one that an
// earlier call spent, or an earlier attempt was given, is never used again.
func specDigest(d tool.Definition, attempt, n int) (string, error) {
	raw, err := json.Marshal(map[string]any{
		"name": d.Name, "description": d.Description, "parameters": string(d.Parameters), "attempt": attempt, "request": n,
	})
	if err != nil {
		return "", fmt.Errorf("definition of %s: %w", d.Name, err)
	}
	return approval.Digest(raw)
}

// Waiting for a decision.
const (
	// watchTime ends a watch before client.RequestTimeout does.
	watchTime = client.RequestTimeout - 10*time.Second
	// firstPause is after a watch that failed. It doubles up to lookPause while the
	// server lets nobody watch.
	firstPause = 200 * time.Millisecond
	lookPause  = 30 * time.Second
)

// decided waits until the approval is decided. When it expires is the server's
// to say. It waits through restarts of the server, as every read does: an approval
// that is not there any more, and ctx, end it.
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

// follow watches an approval until it is decided or watchTime is over. It
// reports false when it could not.
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
