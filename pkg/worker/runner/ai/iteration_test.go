// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package ai

import (
	"context"
	"fmt"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/clock"

	"github.com/platform-ai/platform/pkg/agentloop"
	"github.com/platform-ai/platform/pkg/apis/core/v1alpha1"
	"github.com/platform-ai/platform/pkg/approval"
	"github.com/platform-ai/platform/pkg/llm"
	"github.com/platform-ai/platform/pkg/llm/openai"
	"github.com/platform-ai/platform/pkg/plan"
	"github.com/platform-ai/platform/pkg/tool"
	"github.com/platform-ai/platform/pkg/worker/runner/runnertest"
	"github.com/platform-ai/platform/test/scriptedmodel/script"
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
			"## Decisions of people\nPeople decided as follows on calls that you asked for, oldest first. Each approval is for one call with exactly the approved arguments: ask again before you make another call.\n[{\"id\":\"a\"}]\n\n## Your task\n",
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

type dropped struct {
	Key string `json:"key"`
}

// TestApprovalsSurviveIterations: an approval that an earlier iteration got and did not use lets the next one make the call, once and
// with the same arguments, without asking again. The agent is told of it with the arguments.
func TestApprovalsSurviveIterations(t *testing.T) {
	r := &run{runnertest.New(t, "", v1alpha1.TaskSpec{}).Run}
	object := func(generation int64) *v1alpha1.Tool {
		return &v1alpha1.Tool{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "drop", UID: "tool", Generation: generation}}
	}
	p := &plan.Plan{Gated: []string{"drop"}, Tools: []plan.Tool{{Name: "drop", Object: object(3)}}}
	var made []string
	tools, err := tool.NewCatalogue(tool.New(tool.Definition{Name: "drop", Description: "drops", Parameters: tool.SchemaOf[dropped]()}, func(ctx context.Context, a dropped) (any, error) {
		made = append(made, a.Key+" with "+tool.ApprovalOf(ctx))
		return nil, nil
	}))
	if err != nil {
		t.Fatal(err)
	}
	d, _ := tools.Definition("drop")
	// got is an approval that an earlier iteration got.
	got := func(arguments string, o *v1alpha1.Tool, request int, outcome v1alpha1.ApprovalOutcome) v1alpha1.Approval {
		digest, err := approval.Digest([]byte(arguments))
		if err != nil {
			t.Fatal(err)
		}
		e, id, err := approval.Call{
			Namespace: "ns", Task: "t", TaskUID: "uid", Attempt: 1, Request: request, Object: o,
			Tool: d.Name, Description: d.Description, Parameters: d.Parameters, Arguments: []byte(arguments), ArgsDigest: digest,
		}.Event()
		if err != nil {
			t.Fatal(err)
		}
		events := []*v1alpha1.ExecutionEvent{e, approval.DecisionEvent(v1alpha1.EventApprovalApproved, id, approval.Decision{}), approval.OutcomeEvent(id, approval.Outcome{Outcome: outcome})}
		return approval.Fold(events)[0]
	}
	unused := got(`{"key":"x"}`, object(3), 1, v1alpha1.ApprovalNotStarted)
	i := &iteration{decisions: []byte("[]"), approvals: []v1alpha1.Approval{
		got(`{"key":"used"}`, object(3), 2, v1alpha1.ApprovalSucceeded), got(`{"key":"z"}`, object(2), 3, v1alpha1.ApprovalNotStarted), unused,
	}}
	gate, asks := r.gate(p)
	i.carry(gate, asks, tools)
	want := `[{"id":"` + unused.Name + `","tool":"drop","arguments":{"key":"x"}}]` + "\n\n## Your task\n"
	if text := i.preface(); !strings.HasSuffix(text, want) || !strings.HasPrefix(text, "## Approved calls that you have not made\n") {
		t.Error(text)
	}

	var asked []string
	gate.Ask, gate.Commit = func(_ context.Context, q agentloop.ApprovalRequest) (approval.Answer, error) {
		asked = append(asked, string(q.Arguments))
		return approval.Answer{State: v1alpha1.ApprovalDeclined}, nil
	}, nil
	parsed, err := script.Parse([]byte(`
turns:
- match: {turn: 1}
  reply: {toolCalls: [{id: a, name: drop, arguments: {key: z}}, {id: b, name: drop, arguments: {key: x}}, {id: c, name: drop, arguments: {key: x}}]}
- match: {turn: 2}
  reply: {text: done}`))
	if err != nil {
		t.Fatal(err)
	}
	srv := httptest.NewServer(script.New(parsed, t.Output()))
	defer srv.Close()
	model, err := openai.New(openai.Config{APIKey: "k", BaseURL: srv.URL + "/v1", Clock: clock.RealClock{}})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := agentloop.Run(t.Context(), agentloop.Config{
		Candidates: []llm.Candidate{{Provider: "p", Name: "m", Model: model}}, Tools: tools, Gate: gate, Recorder: r.Recorder, Clock: r.Clock,
	}, []llm.Message{{Role: llm.RoleUser, Text: "go"}}); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{`{"key":"z"}`, `{"key":"x"}`}, asked); diff != "" {
		t.Errorf("people were asked about: %s", diff)
	}
	if diff := cmp.Diff([]string{"x with " + unused.Name}, made); diff != "" {
		t.Errorf("calls: %s", diff)
	}
}
