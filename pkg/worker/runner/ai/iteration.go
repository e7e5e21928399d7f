// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package ai

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/platform-ai/platform/pkg/agentloop"
	"github.com/platform-ai/platform/pkg/apis/core/v1alpha1"
	"github.com/platform-ai/platform/pkg/approval"
	"github.com/platform-ai/platform/pkg/plan"
	"github.com/platform-ai/platform/pkg/runspec"
	"github.com/platform-ai/platform/pkg/tool"
	"github.com/platform-ai/platform/pkg/worker/asking"
)

// Limits of the decisions that an iteration is told of.
const (
	maxDecisions     = 32
	maxDecisionBytes = 32 << 10
	// unusedOverhead is what the JSON of an unused call has besides its members.
	unusedOverhead = 40
)

// decision is a decided approval of the task, for the model.
type decision struct {
	ID       string                 `json:"id"`
	Tool     string                 `json:"tool"`
	Action   string                 `json:"action,omitempty"`
	Decision v1alpha1.ApprovalState `json:"decision"`
	Reason   string                 `json:"reason,omitempty"`
	// Outcome is what became of an approved call; empty if it was not made.
	Outcome string `json:"outcome,omitempty"`
}

// iteration is what an iteration of an autonomous task is told of the earlier ones.
type iteration struct {
	number    int32
	most      int32
	plan      *v1alpha1.TaskPlan // nil if there is none
	decisions []byte             // JSON
	// overflow is set if the decisions are too long to be told.
	overflow bool
	// approvals are those of the task.
	approvals []v1alpha1.Approval
	// unused are the calls that were approved in earlier iterations and not begun, as JSON; empty if there are none.
	unused []byte
}

// unusedCall is a call that was approved in an earlier iteration, for the model.
type unusedCall struct {
	ID        string          `json:"id"`
	Tool      string          `json:"tool"`
	Arguments json.RawMessage `json:"arguments"`
}

// iteration reads what the iteration begins with. It is nil for a run that is not an iteration.
func (r *run) iteration(ctx context.Context, p *plan.Plan) (*iteration, error) {
	if !p.Autonomous {
		return nil, nil //nolint:nilnil // not an iteration
	}
	i := &iteration{number: r.Task.Status.Iteration, most: p.Agent.Spec.Coordination.MaxIterations}
	var err error
	i.plan, err = r.API.CoreV1alpha1().Tasks(r.Task.Namespace).GetPlan(ctx, r.Task.Name, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		i.plan, err = nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("plan: %w", err)
	}
	list, err := r.API.CoreV1alpha1().Approvals(r.Task.Namespace).List(ctx, metav1.ListOptions{FieldSelector: "spec.taskName=" + r.Task.Name})
	if err != nil {
		return nil, fmt.Errorf("approvals: %w", err)
	}
	i.approvals = list.Items
	i.decisions, i.overflow = decisionsOf(list.Items)
	return i, nil
}

// carry gives the gate the approvals that earlier iterations got and did not use: each is for one call of the same tool with
// the same arguments. The agent is told of those whose arguments are stored as they were approved, as far as there is room.
func (i *iteration) carry(g *agentloop.Gate, a *asking.Approvals, tools *tool.Catalogue) {
	if i == nil || i.overflow {
		return
	}
	var told []unusedCall
	room := maxDecisionBytes
	for _, p := range i.approvals {
		d, ok := tools.Definition(p.Spec.TargetTool)
		if !ok || !a.Call(d).Survives(&p) {
			continue
		}
		g.Keep(d.Name, p.Spec.TargetArgsDigest, approval.Answer{ApprovalID: p.Name, State: p.Status.State, Reason: p.Status.DecisionReason})
		if !p.Status.ArgumentsExact || p.Spec.TargetArgsPreview == nil {
			continue
		}
		call := unusedCall{p.Name, d.Name, p.Spec.TargetArgsPreview.Raw}
		if size := len(call.ID) + len(call.Tool) + len(call.Arguments) + unusedOverhead; size <= room {
			told, room = append(told, call), room-size
		}
	}
	if raw, err := json.Marshal(told); err == nil && len(told) > 0 {
		i.unused = raw
	}
}

// decisionsOf returns the newest decisions, oldest first, as JSON. If they are too long, it returns a marker and true.
func decisionsOf(approvals []v1alpha1.Approval) (decisions []byte, overflow bool) {
	decided := slices.DeleteFunc(slices.Clone(approvals), func(a v1alpha1.Approval) bool { return a.Status.State == v1alpha1.ApprovalPending })
	slices.SortFunc(decided, func(a, b v1alpha1.Approval) int { return cmp.Compare(a.Status.DecisionSeq, b.Status.DecisionSeq) })
	decided = decided[max(0, len(decided)-maxDecisions):]
	all := make([]decision, 0, len(decided))
	for _, a := range decided {
		all = append(all, decision{
			ID: a.Name, Tool: a.Spec.TargetTool, Action: a.Spec.Action, Decision: a.Status.State, Reason: a.Status.DecisionReason, Outcome: string(a.Status.ExecutionOutcome),
		})
	}
	raw, err := json.Marshal(all)
	if err != nil || len(raw) > maxDecisionBytes {
		return []byte(`{"overflow":true}`), true
	}
	return raw, false
}

// preface returns the sections that come before the prompt.
func (i *iteration) preface() string {
	if i == nil {
		return ""
	}
	var parts []string
	if p := i.plan; p != nil {
		about := fmt.Sprintf("stored in iteration %d", p.Iteration+1)
		if p.ProgressPct != nil {
			about += fmt.Sprintf(", %d%% done", *p.ProgressPct)
		}
		parts = append(parts, fmt.Sprintf("## Your plan (%s)\n%s\n\n%s", about, p.Summary, p.PlanDocument))
	}
	switch {
	case i.overflow:
		parts = append(parts, "## Decisions of people\nThere are too many to show. Tools that need approval cannot be called in this iteration.")
	case string(i.decisions) != "[]":
		parts = append(parts, "## Decisions of people\nPeople decided as follows on calls that you asked for, oldest first. Each approval is for one call with exactly the approved arguments: ask again before you make another call.\n"+string(i.decisions))
	}
	if len(i.unused) > 0 {
		parts = append(parts, "## Approved calls that you have not made\nYou may make each of them once, with exactly these arguments, and nobody is asked again.\n"+string(i.unused))
	}
	if len(parts) == 0 {
		return ""
	}
	return strings.Join(parts, "\n\n") + "\n\n## Your task\n"
}

// env returns variables that describe the iteration to programs.
func (i *iteration) env() []string {
	if i == nil {
		return nil
	}
	return []string{
		runspec.EnvAutonomousMode + "=true", runspec.EnvAutonomousIteration + "=" + strconv.Itoa(int(i.number)),
		runspec.EnvAutonomousMaxIterations + "=" + strconv.Itoa(int(i.most)), runspec.EnvResolvedApprovals + "=" + string(i.decisions),
	}
}

// restrict makes the gate refuse all calls if the agent cannot be told what people decided before.
func (i *iteration) restrict(g *agentloop.Gate) {
	if i != nil && i.overflow {
		g.Refused = "people decided on more calls of this task than an iteration can be told of"
	}
}
