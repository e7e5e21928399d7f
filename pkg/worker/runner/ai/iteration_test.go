// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package ai

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/platform-ai/platform/pkg/agentloop"
	"github.com/platform-ai/platform/pkg/apis/core/v1alpha1"
)

// approvals returns n decided approvals, newest first, with a reason.
func approvals(n int, reason string) []v1alpha1.Approval {
	list := make([]v1alpha1.Approval, n)
	for i := range list {
		seq := n - i
		list[i] = v1alpha1.Approval{
			ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprint("a", seq)}, Spec: v1alpha1.ApprovalSpec{TargetTool: "deploy", Action: "go live"},
			Status: v1alpha1.ApprovalStatus{State: v1alpha1.ApprovalApproved, DecisionSeq: int64(seq), DecisionReason: reason},
		}
	}
	return list
}

// TestDecisionsOf: an iteration is told of the newest decisions, oldest first, or that they are too long to be told.
func TestDecisionsOf(t *testing.T) {
	two := approvals(2, "")
	two[0].Status.State, two[0].Status.DecisionReason = v1alpha1.ApprovalDeclined, "too early"
	two[1].Status.ExecutionOutcome = "succeeded"
	waiting := approvals(1, "")[0]
	waiting.Status.State = v1alpha1.ApprovalPending
	got, overflow := decisionsOf(append(two, waiting))
	const want = `[{"id":"a1","tool":"deploy","action":"go live","decision":"approved","outcome":"succeeded"},` +
		`{"id":"a2","tool":"deploy","action":"go live","decision":"declined","reason":"too early"}]`
	if diff := cmp.Diff(want, string(got)); diff != "" || overflow {
		t.Error(overflow, diff)
	}
	if got, overflow := decisionsOf(nil); string(got) != "[]" || overflow {
		t.Errorf("nothing was decided: %s %t", got, overflow)
	}
	got, overflow = decisionsOf(approvals(maxDecisions+8, ""))
	if n := strings.Count(string(got), `"id"`); n != maxDecisions || overflow || !strings.HasPrefix(string(got), `[{"id":"a9"`) || !strings.HasSuffix(string(got), "}]") {
		t.Errorf("%d decisions, overflow %t: %.80s", n, overflow, got)
	}
	if got, overflow := decisionsOf(approvals(maxDecisions, strings.Repeat("x", maxDecisionBytes/maxDecisions))); string(got) != `{"overflow":true}` || !overflow {
		t.Errorf("too long: %t %.80s", overflow, got)
	}
}

// TestPrefaceOfIterations: the prompt begins with the plan and what people decided. If that is too long, no call that needs
// an approval is made.
func TestPrefaceOfIterations(t *testing.T) {
	stored := &v1alpha1.TaskPlan{Iteration: 1, Summary: "Half is done.", PlanDocument: "# Steps", ProgressPct: new(int32(50))}
	for name, tc := range map[string]struct {
		i    *iteration
		want string
		env  string // of the decisions
	}{
		"no iteration": {nil, "", ""},
		"the first":    {&iteration{decisions: []byte("[]")}, "", "[]"},
		"plan":         {&iteration{plan: stored, decisions: []byte("[]")}, "## Your plan (stored in iteration 2, 50% done)\nHalf is done.\n\n# Steps\n\n## Your task\n", "[]"},
		"decisions": {
			&iteration{decisions: []byte(`[{"id":"a"}]`)},
			"## Decisions of people\nPeople decided as follows on calls that you asked for, oldest first. Each approval was for one call in its own iteration: ask again before you make another call.\n[{\"id\":\"a\"}]\n\n## Your task\n",
			`[{"id":"a"}]`,
		},
		"too many": {
			&iteration{decisions: []byte(`{"overflow":true}`), overflow: true},
			"## Decisions of people\nThere are too many to show. Tools that need approval cannot be called in this iteration.\n\n## Your task\n", `{"overflow":true}`,
		},
	} {
		if diff := cmp.Diff(tc.want, tc.i.preface()); diff != "" {
			t.Errorf("%s: %s", name, diff)
		}
		if env := tc.i.env(); tc.i != nil && !slices.Contains(env, "PLATFORM_RESOLVED_APPROVALS="+tc.env) || tc.i == nil && env != nil {
			t.Errorf("%s: %v", name, env)
		}
		g := &agentloop.Gate{}
		tc.i.restrict(g)
		if refuses := g.Refused != ""; refuses != (tc.i != nil && tc.i.overflow) {
			t.Errorf("%s: calls are refused: %t", name, refuses)
		}
	}
}
