// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package codingagent

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/platform-ai/platform/pkg/apis/core/v1alpha1"
	"github.com/platform-ai/platform/pkg/approval"
	"github.com/platform-ai/platform/pkg/worker/asking"
	"github.com/platform-ai/platform/pkg/worker/conversation"
)

// gated makes calls of tools need an approval.
func gated(names ...string) func(*v1alpha1.TaskSpec, *v1alpha1.AgentSpec) {
	return func(_ *v1alpha1.TaskSpec, a *v1alpha1.AgentSpec) {
		a.Coordination = &v1alpha1.AgentCoordination{ApprovalRequiredTools: names, ApprovalTimeout: v1alpha1.DurationOf(3_600_000_000_000)}
	}
}

// approves are people who approve everything.
func approves(*v1alpha1.Approval) (v1alpha1.EventType, string) {
	return v1alpha1.EventApprovalApproved, "fine"
}

// content is what events say of calls.
type content struct {
	ToolCallID, ApprovalID, ErrorType   string
	WithoutPermission, ArgumentsChanged bool
}

// told returns what the events say of calls and approvals; n is the number of an approval.
func (o *outcome) told() string {
	o.server.t.Helper()
	number := map[string]int{}
	for i, a := range o.server.approvals() {
		number[a.Name] = i + 1
	}
	var lines []string
	for _, e := range o.Events() {
		if !strings.HasPrefix(string(e.Type), "ToolCall") && e.Type != v1alpha1.EventApprovalRequested {
			continue
		}
		var c content
		if err := json.Unmarshal(e.Content.Raw, &c); err != nil {
			o.server.t.Fatal(err)
		}
		line := strings.TrimPrefix(string(e.Type), "ToolCall") + " " + e.ToolName
		if c.ApprovalID != "" {
			line += fmt.Sprintf(" %d", number[c.ApprovalID])
		}
		for word, is := range map[string]bool{c.ErrorType: c.ErrorType != "", "without": c.WithoutPermission, "changed": c.ArgumentsChanged} {
			if is {
				line += " " + word
			}
		}
		lines = append(lines, line)
	}
	return strings.Join(lines, "; ")
}

// outcomes returns what became of the approvals.
func (o *outcome) outcomes() string {
	var list []string
	for _, a := range o.server.approvals() {
		list = append(list, strings.TrimSpace(string(a.Status.State)+" "+string(a.Status.ExecutionOutcome)))
	}
	return strings.Join(list, "; ")
}

// TestApprovals: people decide about each call of a gated tool, and the events of an approved call name its approval.
func TestApprovals(t *testing.T) {
	one := 0
	for name, tc := range map[string]struct {
		prompt string
		decide func(*v1alpha1.Approval) (v1alpha1.EventType, string)
		judge  func(v1alpha1.ToolCallSpec) v1alpha1.ToolCallStatus
		gates  []string
		// want are what the agent was told, the events, and what became of the approvals.
		want [3]string
	}{
		"approved": {
			"do: permit execute ls", approves, nil,
			[]string{"Bash"},
			[3]string{"yes", "ApprovalRequested execute 1; Started execute 1; Completed execute 1", "approved succeeded"},
		},
		"of a tool": {
			"do: permit-tool Deploy", approves, nil,
			[]string{"deploy"},
			[3]string{"yes", "ApprovalRequested Deploy 1; Started Deploy 1; Failed Deploy 1 outcome_unknown", "approved unknown"},
		},
		"not gated": {"do: permit read x", nil, nil, []string{"bash"}, [3]string{"yes", "Started read; Completed read", ""}},
		"declined": {
			"do: permit execute ls", func(*v1alpha1.Approval) (v1alpha1.EventType, string) {
				return v1alpha1.EventApprovalDeclined, "too dear"
			}, nil,
			[]string{"execute"},
			[3]string{"no", "ApprovalRequested execute 1", "declined"},
		},
		"expired": {
			"do: permit execute ls", func(*v1alpha1.Approval) (v1alpha1.EventType, string) {
				return v1alpha1.EventApprovalExpired, ""
			}, nil,
			[]string{"execute"},
			[3]string{"no", "ApprovalRequested execute 1", "expired"},
		},
		"each call has its own": {
			"do: permit execute ls\ndo: think .\ndo: permit execute ls", func(*v1alpha1.Approval) (v1alpha1.EventType, string) {
				if one++; one == 1 {
					return v1alpha1.EventApprovalApproved, ""
				}
				return v1alpha1.EventApprovalCancelled, ""
			}, nil,
			[]string{"execute"},
			[3]string{"yes no", "ApprovalRequested execute 1; Started execute 1; Completed execute 1; ApprovalRequested execute 2", "approved succeeded; cancelled"},
		},
		"each request has its own": {
			"do: permit-again execute ls", approves, nil,
			[]string{"execute"},
			[3]string{
				"yes yes", "ApprovalRequested execute 1; Started execute 1; ApprovalRequested execute 2; Failed execute 1 approval_required; Started execute 2; Completed execute 2",
				"approved failed; approved succeeded",
			},
		},
		"only for ever": {"do: permit-always execute ls", approves, nil, []string{"execute"}, [3]string{"no", "", ""}},
		"only for ever, not gated": {
			"do: permit-always execute ls", nil, nil, nil,
			[3]string{"always", "", ""},
		},
		"made all the same": {
			"do: permit-ignored execute ls", func(*v1alpha1.Approval) (v1alpha1.EventType, string) {
				return v1alpha1.EventApprovalDeclined, ""
			}, nil,
			[]string{"execute"},
			[3]string{"no", "ApprovalRequested execute 1; Started execute without; Completed execute without", "declined"},
		},
		"not asked": {"do: tool execute ls\ndo: say done", nil, nil, []string{"execute"}, [3]string{"done", "Started execute without; Completed execute without", ""}},
		"other arguments": {
			"do: permit-changed execute ls", approves, nil,
			[]string{"execute"},
			[3]string{"yes", "ApprovalRequested execute 1; Started execute 1; Completed execute 1 changed", "approved succeeded"},
		},
		"begun, and gated": {
			"do: permit-running execute ls", approves, nil,
			[]string{"execute"},
			[3]string{"yes", "ApprovalRequested execute 1; Started execute 1; Completed execute 1", "approved succeeded"},
		},
		"begun, and held back by a policy": {
			"do: permit-running execute ls", approves, func(v1alpha1.ToolCallSpec) v1alpha1.ToolCallStatus {
				return v1alpha1.ToolCallStatus{Verdict: v1alpha1.ToolCallApprovalRequired}
			}, nil,
			[3]string{"yes", "Started execute; ApprovalRequested execute 1; Failed execute approval_required; Started execute 1; Completed execute 1", "approved succeeded"},
		},
		"denied by a policy": {
			"do: permit execute ls", nil, func(v1alpha1.ToolCallSpec) v1alpha1.ToolCallStatus {
				return v1alpha1.ToolCallStatus{Verdict: v1alpha1.ToolCallDenied, Findings: []v1alpha1.ToolCallFinding{{Message: "no ls"}}}
			}, nil,
			[3]string{"no", "", ""},
		},
		"not to be read by policies": {
			`do: permit-json execute {"a":1,"a":2}`, approves, nil,
			[]string{"execute"},
			[3]string{"no", "Started execute; Failed execute invalid_arguments", ""},
		},
	} {
		t.Run(name, func(t *testing.T) {
			o := prepared(t, tc.prompt, gated(tc.gates...))
			o.server.decide, o.server.judge = tc.decide, tc.judge
			o.run(t.Context())
			if d := cmp.Diff(tc.want, [3]string{o.said(), o.told(), o.outcomes()}); d != "" {
				t.Errorf("%s\n%v\n%s", d, o.err, o.Logged())
			}
		})
	}
}

// TestAsked: policies and people are asked about exactly what the agent described, without the secrets of the run.
func TestAsked(t *testing.T) {
	o := prepared(t, strings.Join([]string{
		`do: permit-json execute {"command": "deploy --key s3cret", "n": 1.50}`, "do: permit-json edit [1]", "do: permit-bare delete Delete old.txt",
	}, "\n"), gated("execute", "edit", "delete"))
	o.Scrub = func(text string) string { return strings.ReplaceAll(text, "s3cret", "[gone]") }
	o.SecretsIn = func(text []byte) []string {
		if strings.Contains(string(text), "s3cret") {
			return []string{"s3cret"}
		}
		return nil
	}
	o.server.decide = approves
	o.run(t.Context())
	list := o.server.approvals()
	if len(list) != 3 || o.err != nil {
		t.Fatalf("%d approvals, %v", len(list), o.err)
	}
	for i, want := range []struct{ tool, preview, arguments, action, risk string }{
		{"execute", `{"command":"deploy --key [gone]","n":1.50}`, `{"command": "deploy --key s3cret", "n": 1.5}`, "a call", ""},
		{"edit", `{"input":[1]}`, `{"input":[1]}`, "a call", ""},
		{"delete", `{"title":"Delete old.txt","kind":"delete"}`, `{"title":"Delete old.txt","kind":"delete"}`, "Delete old.txt", conversation.Without},
	} {
		s := list[i].Spec
		digest, err := approval.Digest([]byte(want.arguments))
		if err != nil {
			t.Fatal(err)
		}
		if s.TargetTool != want.tool || string(s.TargetArgsPreview.Raw) != want.preview || s.TargetArgsDigest != digest || s.Action != want.action || s.RiskSummary != want.risk {
			t.Errorf("%s: %s, %q, %q", s.TargetTool, s.TargetArgsPreview.Raw, s.Action, s.RiskSummary)
		}
		if b := s.Binding; b == nil || b.TaskAttempt != 2 || int(b.Request) != i+1 || s.Timeout != "1h0m0s" || s.ToolCallID != fmt.Sprintf("c%d", i+1) {
			t.Errorf("%+v, %+v", s, b)
		}
		c := o.server.calls[i]
		got, err := approval.Digest(c.Arguments.Raw)
		if err != nil || got != digest || c.Kind != want.tool || c.ToolName != want.tool || c.TaskName != "t" || (len(c.Sensitive) == 1) != (i == 0) {
			t.Errorf("policies were asked %+v, %v", c, err)
		}
	}
	if events := fmt.Sprintf("%+v", o.Events()); strings.Contains(events, "--key s3cret") || strings.Contains(events, "old.txt\"}") {
		t.Errorf("events %s", events)
	}
}

// TestFlood: of many requests at once, people get as many as may wait at once, in the order of their arrival, and all are answered.
func TestFlood(t *testing.T) {
	o := prepared(t, "do: flood 100 execute", gated("execute"))
	done := make(chan struct{})
	go func() {
		defer close(done)
		o.run(t.Context())
	}()
	for n := range 100 {
		all := o.server.asked(max(n+1, min(100, asking.MaxPending)))
		o.server.decideOn(all[n].Name, []v1alpha1.EventType{v1alpha1.EventApprovalApproved, v1alpha1.EventApprovalDeclined}[n%2], "")
	}
	<-done
	if o.said() != "no=50 yes=50" || o.err != nil {
		t.Errorf("it was told %q, %v", o.said(), o.err)
	}
	if o.server.most != asking.MaxPending {
		t.Errorf("%d approvals waited at once", o.server.most)
	}
	var order []string
	for _, a := range o.server.approvals() {
		order = append(order, string(a.Spec.TargetArgsPreview.Raw))
	}
	if !slices.IsSortedFunc(order, func(a, b string) int { return len(a) - len(b) }) || order[0] != `{"n":0}` || order[63] != `{"n":63}` || order[99] != `{"n":99}` {
		t.Errorf("people were asked %v", order)
	}
}

// TestUnstored: a call is not permitted if people could not be asked, or if its start could not be stored.
func TestUnstored(t *testing.T) {
	for lose, want := range map[v1alpha1.EventType][2]string{
		v1alpha1.EventApprovalRequested: {"Started execute; Failed execute unavailable; Started execute; Failed execute unavailable", ""},
		v1alpha1.EventToolCallStarted: {
			"ApprovalRequested execute 1; Failed execute 1 unavailable; ApprovalRequested execute 2; Failed execute 2 unavailable", "approved failed; approved failed",
		},
	} {
		o := prepared(t, "do: permit execute a\ndo: think .\ndo: permit execute b", gated("execute"))
		o.lose, o.server.decide = lose, approves
		o.run(t.Context())
		if d := cmp.Diff(want, [2]string{o.told(), o.outcomes()}); d != "" || o.said() != "no no" {
			t.Errorf("%s is lost: %s\n%s, %v\n%s", lose, d, o.said(), o.err, o.Logged())
		}
	}
}

// TestGivenUp: an approval for which the agent no longer waits has no effect, and the run goes on.
func TestGivenUp(t *testing.T) {
	o := prepared(t, "do: permit-abandoned\ndo: think .\ndo: permit execute ls", gated("other", "execute"))
	o.server.decide = func(a *v1alpha1.Approval) (v1alpha1.EventType, string) {
		if a.Spec.TargetTool == "execute" {
			return v1alpha1.EventApprovalApproved, ""
		}
		return "", ""
	}
	o.run(t.Context())
	if !strings.HasPrefix(o.said(), `{"outcome":{"outcome":"cancelled"}} yes`) || !strings.HasSuffix(o.outcomes(), "approved succeeded") || strings.Contains(o.told(), "Started other") {
		t.Errorf("%q; %s; %s", o.said(), o.told(), o.outcomes())
	}
}

// TestFiles: the rules, the policies and people decide about files that the worker reads and writes for the agent, once for each call.
func TestFiles(t *testing.T) {
	for name, tc := range map[string]struct {
		prompt string
		change func(*v1alpha1.TaskAgentRuntime, *v1alpha1.AgentSpec)
		judge  func(v1alpha1.ToolCallSpec) v1alpha1.ToolCallStatus
		decide func(*v1alpha1.Approval) (v1alpha1.EventType, string)
		// want are what the agent was told, the events, what was written, and of how many calls the policies knew.
		want [3]string
		asks int
	}{
		"free":       {"do: write new x", nil, nil, nil, [3]string{"{}", "", "x"}, 1},
		"read":       {"do: read README", nil, nil, nil, [3]string{"about\n", "", ""}, 1},
		"disallowed": {"do: write new x", func(t *v1alpha1.TaskAgentRuntime, _ *v1alpha1.AgentSpec) { t.DisallowedTools = []string{"edit"} }, nil, nil, [3]string{"error -32602", "", ""}, 0},
		"by its name": {
			"do: write new x", func(t *v1alpha1.TaskAgentRuntime, _ *v1alpha1.AgentSpec) { t.DisallowedTools = []string{"Write"} }, nil, nil,
			[3]string{"error -32602", "", ""},
			0,
		},
		"not allowed": {
			"do: write new x\ndo: think .\ndo: read README", func(t *v1alpha1.TaskAgentRuntime, _ *v1alpha1.AgentSpec) { t.AllowedTools = []string{"read"} }, nil, nil,
			[3]string{"error -32602 about\n", "", ""},
			1,
		},
		"reading not allowed": {
			"do: read README", func(t *v1alpha1.TaskAgentRuntime, _ *v1alpha1.AgentSpec) { t.AllowedTools = []string{"edit"} }, nil, nil,
			[3]string{"error -32602", "", ""},
			0,
		},
		"denied": {"do: write new x\ndo: think .\ndo: write other x", nil, func(c v1alpha1.ToolCallSpec) v1alpha1.ToolCallStatus {
			if c.ToolName == "write" && c.Kind == "edit" && strings.Contains(string(c.Arguments.Raw), `"content":"x"`) && strings.Contains(string(c.Arguments.Raw), "/new") {
				return v1alpha1.ToolCallStatus{Verdict: v1alpha1.ToolCallDenied}
			}
			return v1alpha1.ToolCallStatus{Verdict: v1alpha1.ToolCallAllowed}
		}, nil, [3]string{"error -32602 {}", "", ""}, 2},
		"approved": {"do: write new x", needs("edit"), nil, approves, [3]string{"{}", "ApprovalRequested write 1; Started write 1; Completed write 1", "x"}, 1},
		"declined": {
			"do: write new x", needs("write"), nil, func(*v1alpha1.Approval) (v1alpha1.EventType, string) { return v1alpha1.EventApprovalDeclined, "" },
			[3]string{"error -32602", "ApprovalRequested write 1", ""},
			1,
		},
		"of a call": {"do: edit new x", nil, nil, nil, [3]string{"{}", "Started edit; Completed edit", "x"}, 1},
		"of an approved call": {
			"do: edit new x\ndo: think .\ndo: write new y", needs("edit"), nil, approves,
			[3]string{"{} {}", "ApprovalRequested edit 1; Started edit 1; Completed edit 1; ApprovalRequested write 2; Started write 2; Completed write 2", "y"},
			2,
		},
		"of a call for another file": {"do: edit-elsewhere new", needs("edit"), nil, func(a *v1alpha1.Approval) (v1alpha1.EventType, string) {
			if a.Spec.TargetTool == "edit" {
				return v1alpha1.EventApprovalApproved, ""
			}
			return v1alpha1.EventApprovalDeclined, ""
		}, [3]string{"yes error -32602", "ApprovalRequested edit 1; Started edit 1; ApprovalRequested write 2; Completed edit 1", ""}, 2},
	} {
		t.Run(name, func(t *testing.T) {
			o := prepared(t, tc.prompt, func(s *v1alpha1.TaskSpec, a *v1alpha1.AgentSpec) {
				s.AgentRuntime = &v1alpha1.TaskAgentRuntime{}
				if tc.change != nil {
					tc.change(s.AgentRuntime, a)
				}
			})
			o.server.judge, o.server.decide = tc.judge, tc.decide
			o.run(t.Context())
			written, _ := os.ReadFile(filepath.Join(o.WorkDir, "new"))
			if d := cmp.Diff(tc.want, [3]string{o.said(), o.told(), string(written)}); d != "" || len(o.server.calls) != tc.asks {
				t.Errorf("%s\npolicies: %+v\n%s", d, o.server.calls, o.Logged())
			}
		})
	}
}

func needs(names ...string) func(*v1alpha1.TaskAgentRuntime, *v1alpha1.AgentSpec) {
	return func(_ *v1alpha1.TaskAgentRuntime, a *v1alpha1.AgentSpec) { gated(names...)(nil, a) }
}
