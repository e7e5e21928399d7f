// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package agentloop

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/platform-ai/platform/pkg/apis/core/v1alpha1"
	"github.com/platform-ai/platform/pkg/approval"
	"github.com/platform-ai/platform/pkg/llm"
	"github.com/platform-ai/platform/pkg/tool"
	request "github.com/platform-ai/platform/pkg/worker/tool/approval"
)

// people answer requests with the given answers in order, and record them together with other
// events.
type people struct {
	answers []v1alpha1.ApprovalState
	reason  string
	err     error
	trail   []string
	asked   []ApprovalRequest
}

func (p *people) ask(_ context.Context, r ApprovalRequest) (approval.Answer, error) {
	if p.err != nil {
		return approval.Answer{}, p.err
	}
	p.asked = append(p.asked, r)
	n := len(p.asked)
	p.trail = append(p.trail, fmt.Sprintf("asked %d %s", n, r.CallID))
	return approval.Answer{ApprovalID: fmt.Sprintf("approval-%d", n), State: p.answers[n-1], Reason: p.reason}, nil
}

type dropArguments struct {
	Key   string  `json:"key"`
	Count float64 `json:"count,omitempty"`
}

// newGated is a setup whose tool drop needs approval, and notes its calls.
func newGated(t *testing.T, p *people, text string) *setup {
	t.Helper()
	s := newSetup(t, text)
	s.config.Gate = &Gate{Names: []string{"drop"}, Ask: p.ask, Commit: func(_ context.Context, e *v1alpha1.ExecutionEvent) error {
		p.trail = append(p.trail, "stored "+string(e.Type))
		s.events.Record(e)
		return nil
	}}
	var err error
	s.config.Tools, err = tool.NewCatalogue(
		tool.New(tool.Definition{Name: "drop", Description: "drops", Parameters: tool.SchemaOf[dropArguments]()}, func(ctx context.Context, a dropArguments) (any, error) {
			p.trail = append(p.trail, "called "+a.Key+" with "+tool.ApprovalOf(ctx))
			return a.Key, nil
		}),
		tool.New(tool.Definition{Name: "free", Description: "is free", Parameters: tool.SchemaOf[struct{}]()}, func(ctx context.Context, _ struct{}) (any, error) {
			p.trail = append(p.trail, "free"+tool.ApprovalOf(ctx))
			return "free", nil
		}),
		request.New(s.config.Gate.RequestApproval))
	if err != nil {
		t.Fatal(err)
	}
	return s
}

const oneCall = `
turns:
- match: {turn: 1}
  reply: {text: I drop x., toolCalls: [{id: call-1, name: drop, arguments: {key: x}}]}
- match: {turn: 2, lastRole: tool}
  reply: {text: "{{ .Results.drop }}"}`

func TestApprovedCall(t *testing.T) {
	p := &people{answers: []v1alpha1.ApprovalState{v1alpha1.ApprovalApproved}}
	s := newGated(t, p, oneCall)
	if _, err := s.run(t); err != nil {
		t.Fatal(err)
	}
	// The start is stored before the call and after the approval.
	if diff := cmp.Diff([]string{"asked 1 call-1", "stored ToolCallStarted", "called x with approval-1"}, p.trail); diff != "" {
		t.Error(diff)
	}
	digest, err := approval.Digest([]byte(`{"key":"x"}`))
	if err != nil {
		t.Fatal(err)
	}
	if q := p.asked[0]; string(q.Arguments) != `{"key":"x"}` || q.ArgsDigest != digest || q.Tool.Name != "drop" || q.Action != "I drop x." {
		t.Errorf("asked %+v", q)
	}
	want := []string{"ToolCallStarted toolCallID=call-1 approvalID=approval-1", "ToolCallCompleted toolCallID=call-1 approvalID=approval-1"}
	var got []string
	for _, line := range s.events.lines("toolCallID", "approvalID") {
		if strings.HasPrefix(line, "ToolCall") {
			got = append(got, line)
		}
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

func TestRefusedCall(t *testing.T) {
	for state, want := range map[v1alpha1.ApprovalState][]string{
		v1alpha1.ApprovalDeclined:  {"errorType:approval_declined", "suggestion:the reason given: too late"},
		v1alpha1.ApprovalExpired:   {"errorType:approval_expired"},
		v1alpha1.ApprovalCancelled: {"errorType:approval_cancelled"},
		// Every state other than approved counts as declined.
		v1alpha1.ApprovalPending: {"errorType:approval_declined"},
		"":                       {"errorType:approval_declined"},
	} {
		t.Run(string(state), func(t *testing.T) {
			p := &people{answers: []v1alpha1.ApprovalState{state}, reason: "too late"}
			s := newGated(t, p, oneCall)
			r, err := s.run(t)
			if err != nil {
				t.Fatal(err)
			}
			for _, w := range want {
				if !strings.Contains(r.Text, w) {
					t.Errorf("the model was told %s", r.Text)
				}
			}
			if diff := cmp.Diff([]string{"asked 1 call-1"}, p.trail); diff != "" {
				t.Error(diff)
			}
			if n := s.events.count(v1alpha1.EventToolCallStarted) + s.events.count(v1alpha1.EventToolCallFailed); n != 0 {
				t.Errorf("%d events of a call that was not made", n)
			}
		})
	}
}

// TestWithdrawnForAReason: the model reads why a request was withdrawn.
func TestWithdrawnForAReason(t *testing.T) {
	p := &people{answers: []v1alpha1.ApprovalState{v1alpha1.ApprovalCancelled}, reason: "the Tool changed"}
	s := newGated(t, p, oneCall)
	r, err := s.run(t)
	if err != nil || !strings.Contains(r.Text, "suggestion:the reason: the Tool changed; go on without it") {
		t.Errorf("%v; the model was told %s", err, r.Text)
	}
}

// TestClosedGate: a gate that refuses all calls asks nobody, and the model reads why.
func TestClosedGate(t *testing.T) {
	p := &people{}
	s := newGated(t, p, oneCall)
	s.config.Gate.Refused = "nobody can be told what was decided"
	r, err := s.run(t)
	if err != nil {
		t.Fatal(err)
	}
	if len(p.trail) > 0 || !strings.Contains(r.Text, "permission_denied") || !strings.Contains(r.Text, "nobody can be told what was decided") {
		t.Errorf("%v; the model was told %s", p.trail, r.Text)
	}
}

// TestApprovalIsSpentOnce: equal calls need an approval each, and one that was
// asked for beforehand serves one call with equal arguments, however they are written.
func TestApprovalIsSpentOnce(t *testing.T) {
	const yes, no = v1alpha1.ApprovalApproved, v1alpha1.ApprovalDeclined
	for _, tc := range []struct {
		name    string
		calls   string
		answers []v1alpha1.ApprovalState
		want    []string
	}{
		{
			"equal calls",
			`{id: a, name: drop, arguments: {key: x}}, {id: b, name: drop, arguments: {key: x}}`,
			[]v1alpha1.ApprovalState{yes, no},
			[]string{"asked 1 a", "stored ToolCallStarted", "called x with approval-1", "asked 2 b"},
		},
		{
			"beforehand", `{id: a, name: request_approval, arguments: {action: drop it, targetTool: drop, targetArguments: {key: x, count: 1}}},
				{id: b, name: drop, rawArguments: '{"count":1.0, "key":"x"}'}, {id: c, name: drop, arguments: {key: x, count: 1}}`,
			[]v1alpha1.ApprovalState{yes, no},
			[]string{"asked 1 a", "stored ToolCallStarted", "called x with approval-1", "asked 2 c"},
		},
		{
			"beforehand, then another call", `{id: a, name: request_approval, arguments: {action: drop it, targetTool: drop, targetArguments: {key: x}}},
				{id: b, name: drop, arguments: {key: other}}`,
			[]v1alpha1.ApprovalState{yes, no},
			[]string{"asked 1 a", "asked 2 b"},
		},
		{
			"declined beforehand", `{id: a, name: request_approval, arguments: {action: drop it, targetTool: drop, targetArguments: {key: x}}},
				{id: b, name: drop, arguments: {key: x}}`,
			[]v1alpha1.ApprovalState{no, no},
			[]string{"asked 1 a", "asked 2 b"},
		},
		{
			"ungated tool", `{id: a, name: request_approval, arguments: {action: do it, targetTool: free, targetArguments: {}}}, {id: b, name: free, arguments: {}}`, nil,
			[]string{"free"},
		},
		{
			"arguments that do not fit", `{id: a, name: drop, arguments: {key: 1}}, {id: b, name: request_approval, arguments: {action: do it, targetTool: drop, targetArguments: {}}}`, nil, nil,
		},
		{"arguments that two may read differently", `{id: a, name: drop, rawArguments: '{"key":"x","key":"y"}'}`, nil, nil},
	} {
		t.Run(tc.name, func(t *testing.T) {
			p := &people{answers: tc.answers}
			s := newGated(t, p, "turns:\n- match: {turn: 1}\n  reply: {toolCalls: ["+tc.calls+"]}\n- match: {turn: 2}\n  reply: {text: done}")
			if _, err := s.run(t); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tc.want, p.trail); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// TestUnreadableCallsCostTheCall: arguments that cannot be read, and a call that policies cannot judge, end neither the run nor
// reach the tool or people. The model is told, and the call is in the log.
func TestUnreadableCallsCostTheCall(t *testing.T) {
	for name, tc := range map[string]struct {
		call, told string
		refused    error
	}{
		"number out of range": {`{id: a, name: free, rawArguments: '{"k":1e400}'}`, "out of range", nil},
		"of a gated tool":     {`{id: a, name: drop, rawArguments: '{"key":"x","count":1e400}'}`, "count: the number 1e400", nil},
		"a key twice":         {`{id: a, name: free, rawArguments: '{"k":1,"k":2}'}`, "a key twice", nil},
		"half a character":    {`{id: a, name: free, rawArguments: '{"k":"\ud83d"}'}`, "not Unicode", nil},
		"not judged":          {`{id: a, name: free, arguments: {}}`, "too many values", tool.InvalidArguments("too many values")},
	} {
		t.Run(name, func(t *testing.T) {
			p := &people{}
			s := newGated(t, p, "turns:\n- match: {turn: 1}\n  reply: {toolCalls: ["+tc.call+"]}\n- match: {turn: 2}\n  reply: {text: '{{ index .Results \"free\" }}{{ index .Results \"drop\" }}'}")
			s.config.Judge = func(context.Context, string, string, json.RawMessage) (v1alpha1.ToolCallStatus, error) {
				return v1alpha1.ToolCallStatus{}, tc.refused
			}
			r, err := s.run(t)
			if err != nil {
				t.Fatal(err)
			}
			if len(p.trail) > 0 || s.events.count(v1alpha1.EventToolCallFailed) != 1 {
				t.Errorf("%v, %d failed", p.trail, s.events.count(v1alpha1.EventToolCallFailed))
			}
			if !strings.Contains(r.Text, "invalid_arguments") || !strings.Contains(r.Text, tc.told) {
				t.Errorf("the model was told %s", r.Text)
			}
		})
	}
}

// TestNobodyToAsk: a gated call is never made without an approval.
func TestNobodyToAsk(t *testing.T) {
	boom := errors.New("boom")
	const beforehand = `
turns:
- match: {turn: 1}
  reply: {toolCalls: [{name: request_approval, arguments: {action: a, targetTool: drop, targetArguments: {key: x}}}]}`
	for name, text := range map[string]string{"gated": oneCall, "beforehand": beforehand} {
		t.Run(name, func(t *testing.T) {
			p := &people{err: boom}
			if _, err := newGated(t, p, text).run(t); !errors.Is(err, ErrApproval) || !errors.Is(err, boom) || len(p.trail) > 0 {
				t.Errorf("%v, %v", err, p.trail)
			}
		})
	}
	t.Run("start not stored", func(t *testing.T) {
		p := &people{answers: []v1alpha1.ApprovalState{v1alpha1.ApprovalApproved}}
		s := newGated(t, p, oneCall)
		s.config.Gate.Commit = func(context.Context, *v1alpha1.ExecutionEvent) error { return boom }
		if _, err := s.run(t); !errors.Is(err, ErrApproval) || !errors.Is(err, boom) {
			t.Error(err)
		}
		if diff := cmp.Diff([]string{"asked 1 call-1"}, p.trail); diff != "" {
			t.Error(diff)
		}
	})
	t.Run("stopped while waiting", func(t *testing.T) {
		p := &people{}
		s := newGated(t, p, oneCall)
		ctx, stop := context.WithCancel(t.Context())
		s.config.Gate.Ask = func(ctx context.Context, _ ApprovalRequest) (approval.Answer, error) {
			stop()
			return approval.Answer{}, ctx.Err()
		}
		_, err := Run(ctx, s.config, []llm.Message{{Role: llm.RoleUser, Text: "go"}})
		if llm.ClassOf(err) != llm.ClassCanceled || errors.Is(err, ErrApproval) {
			t.Errorf("got %v", err)
		}
	})
}

// TestRequestApprovalTells: the model learns the decision and what to do.
func TestRequestApprovalTells(t *testing.T) {
	p := &people{answers: []v1alpha1.ApprovalState{v1alpha1.ApprovalApproved}, reason: "fine"}
	s := newGated(t, p, `
turns:
- match: {turn: 1, offered: [request_approval]}
  reply: {toolCalls: [{name: request_approval, arguments: {action: drop it, targetTool: drop, targetArguments: {key: x}, riskSummary: gone, severity: critical}}]}
- match: {turn: 2, contains: '"decision":"approved"'}
  reply: {text: "{{ .Results.request_approval.data.reason }} {{ .Results.request_approval.data.approvalID }}"}`)
	r, err := s.run(t)
	if err != nil || r.Text != "fine approval-1" {
		t.Errorf("%q %v", r.Text, err)
	}
	q := p.asked[0]
	q.Tool, q.ArgsDigest, q.CallID = tool.Definition{}, "", ""
	want := ApprovalRequest{Arguments: json.RawMessage(`{"key":"x"}`), Action: "drop it", RiskSummary: "gone", Severity: v1alpha1.SeverityCritical}
	if diff := cmp.Diff(want, q); diff != "" {
		t.Error(diff)
	}
}

// TestUncertainCall: whoever is asked to approve a call that may have been carried out before is told so; not for another call.
func TestUncertainCall(t *testing.T) {
	p := &people{answers: []v1alpha1.ApprovalState{v1alpha1.ApprovalApproved, v1alpha1.ApprovalApproved, v1alpha1.ApprovalApproved}}
	s := newGated(t, p, `
turns:
- match: {turn: 1}
  reply: {toolCalls: [{id: call-1, name: drop, arguments: {key: x}}, {id: call-2, name: drop, arguments: {key: z}}, {id: call-3, name: drop, arguments: {key: x}}]}
- match: {turn: 2, lastRole: tool}
  reply: {text: done}`)
	var err error
	s.config.Tools, err = tool.NewCatalogue(tool.New(tool.Definition{Name: "drop", Description: "drops", Parameters: tool.SchemaOf[dropArguments]()}, func(context.Context, dropArguments) (any, error) {
		return nil, tool.OutcomeUnknown("drop", "the connection broke")
	}))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := s.run(t); err != nil {
		t.Fatal(err)
	}
	var uncertain []bool
	for _, r := range p.asked {
		uncertain = append(uncertain, r.Uncertain)
	}
	if diff := cmp.Diff([]bool{false, false, true}, uncertain); diff != "" {
		t.Error(diff)
	}
}
