// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package approval

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/platform-ai/platform/pkg/apis/core/v1alpha1"
	"github.com/platform-ai/platform/pkg/approval/approvaltest"
)

func ofCall() Call {
	return Call{
		Namespace: "ns", Task: "t", TaskUID: "u", Attempt: 1, Request: 2, Tool: "drop", Description: "Drops a table.", Parameters: json.RawMessage(`{"type":"object"}`),
		ID: "call-1", Arguments: []byte(`{"table":"users"}`), ArgsDigest: "015abd7f5cc57a2dd94b7590f04ad8084273905ee33ec5cebeae62276a97f862",
		Action: "drop it", RiskSummary: "data is lost", Severity: v1alpha1.SeverityError, Timeout: 10 * time.Minute,
	}
}

// Stores contain the id and the content of requests, so the id may not change, and members may only be added.
func TestCallEvent(t *testing.T) {
	e, id, err := ofCall().Event()
	if err != nil {
		t.Fatal(err)
	}
	const want = `{"approvalID":"e2b715c5a1f9a56cc3096e890829aff40c7aa5e9be4bff9e41fbca23dee0b877","taskUID":"u","action":"drop it","riskSummary":"data is lost","severity":"error",` +
		`"targetTool":"drop","toolCallID":"call-1","targetArgsDigest":"015abd7f5cc57a2dd94b7590f04ad8084273905ee33ec5cebeae62276a97f862",` +
		`"targetSpecDigest":"ebbede8e253c6b5c07f0933e8d221d38ad457ed78b16791ca0b90f868e56010d",` +
		`"targetArgsPreview":{"table":"users"},"timeout":"10m0s","binding":{"taskAttempt":1,"request":2,"callIDDigest":"5d7963c4f471e142f5a72214a9666fb164718f9ba1066a7862ac1c5041887940"}}`
	if d := cmp.Diff(want, string(e.Content.Raw)); d != "" {
		t.Error(d)
	}
	if id != "e2b715c5a1f9a56cc3096e890829aff40c7aa5e9be4bff9e41fbca23dee0b877" || e.DedupKey != RequestKey(id) || e.ToolCallID != "call-1" {
		t.Errorf("%s %+v", id, e)
	}
	if _, err := Admit(e, Owner{Namespace: "ns", Task: "t", UID: "u"}, noon()); err != nil {
		t.Errorf("the server refuses it: %v", err)
	}
}

// Equal calls have different approvals, and so do other attempts and other tools of the same name.
func TestCallsHaveApprovalsOfTheirOwn(t *testing.T) {
	seen := map[string]string{}
	for name, change := range map[string]func(*Call){
		"itself": func(*Call) {}, "attempt": func(c *Call) { c.Attempt++ }, "request": func(c *Call) { c.Request++ },
		"description": func(c *Call) { c.Description = "Drops nothing." }, "parameters": func(c *Call) { c.Parameters = nil },
		"arguments": func(c *Call) { c.ArgsDigest = seen["none"] + "a" }, "tool": func(c *Call) { c.Tool = "keep" },
	} {
		c := ofCall()
		change(&c)
		_, id, err := c.Event()
		if err != nil || id == "" || seen[id] != "" {
			t.Errorf("%s: id %q, as %s, %v", name, id, seen[id], err)
		}
		seen[id] = name
	}
	c := ofCall()
	c.ID, c.Action, c.Timeout, c.Arguments = "call-2", "", 0, nil
	if _, id, err := c.Event(); err != nil || seen[id] != "itself" {
		t.Errorf("words are part of the id: %s, %v", id, err)
	}
}

// TestSurvives: an approval that was not used is valid in a later attempt for one call of the tool as it was approved.
func TestSurvives(t *testing.T) {
	type pair struct {
		a *v1alpha1.Approval
		c *Call
	}
	for name, change := range map[string]func(pair){
		"": func(pair) {}, "a later attempt": func(p pair) { p.c.Attempt, p.c.Request = 7, 1 }, "other arguments, which the caller compares": func(p pair) { p.c.ArgsDigest = "x" },
		"-declined":            func(p pair) { p.a.Status.State = v1alpha1.ApprovalDeclined },
		"-pending":             func(p pair) { p.a.Status.State, p.a.Status.ExecutionOutcome = v1alpha1.ApprovalPending, "" },
		"-begun":               func(p pair) { p.a.Status.ExecutionOutcome = v1alpha1.ApprovalRunning },
		"-used":                func(p pair) { p.a.Status.ExecutionOutcome = v1alpha1.ApprovalSucceeded },
		"-another description": func(p pair) { p.c.Description = "Drops nothing." },
		"-other parameters":    func(p pair) { p.c.Parameters = nil },
		"-another tool":        func(p pair) { p.c.Tool = "keep" },
		"-another task":        func(p pair) { p.c.TaskUID = "before" },
		"-a changed Tool":      func(p pair) { p.c.Object = approvaltest.Tool("tool", 4) },
		"-another Tool":        func(p pair) { p.c.Object = approvaltest.Tool("other", 3) },
		"-a built-in tool":     func(p pair) { p.c.Object = nil },
		"-an earlier worker's": func(p pair) { p.a.Spec.Binding.Request = 0 },
		"-without a binding":   func(p pair) { p.a.Spec.Binding = nil },
	} {
		c := ofCall()
		c.Object = approvaltest.Tool("tool", 3)
		e, id, err := c.Event()
		if err != nil {
			t.Fatal(err)
		}
		e.Namespace = "ns"
		a := Fold([]*v1alpha1.ExecutionEvent{e, inNamespace(DecisionEvent(v1alpha1.EventApprovalApproved, id, Decision{TaskUID: "u"}))})[0]
		change(pair{&a, &c})
		if got := c.Survives(&a); got == strings.HasPrefix(name, "-") {
			t.Errorf("%q: survives: %t", name, got)
		}
	}
}

func inNamespace(e *v1alpha1.ExecutionEvent) *v1alpha1.ExecutionEvent {
	e.Namespace = "ns"
	return e
}

func TestVerify(t *testing.T) {
	a := approvaltest.Asked("", 1)
	a.Name = ID("ns", "t", "u", "drop", "", "")
	if err := Verify(&a); err != nil {
		t.Error(err)
	}
	a.Spec.TargetTool = "keep"
	if err := Verify(&a); err == nil {
		t.Error("another tool was not noticed")
	}
}

func TestSpend(t *testing.T) {
	var u Unspent
	if a, ok := u.Spend("drop", "x"); ok {
		t.Errorf("empty: %+v", a)
	}
	for _, id := range []string{"1", "2"} {
		u.Keep("drop", "x", Answer{ApprovalID: id, State: v1alpha1.ApprovalApproved})
	}
	u.Keep("drop", "y", Answer{ApprovalID: "3", State: v1alpha1.ApprovalDeclined})
	for _, want := range []string{"1", "2", ""} {
		if a, ok := u.Spend("drop", "x"); a.ApprovalID != want || ok != (want != "") {
			t.Errorf("spent %+v, want %q", a, want)
		}
	}
	for _, other := range [][2]string{{"drop", "y"}, {"keep", "x"}} {
		if a, ok := u.Spend(other[0], other[1]); ok {
			t.Errorf("spent %+v for %v", a, other)
		}
	}
}
