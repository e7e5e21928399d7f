// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package approval

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/types"

	"github.com/platform-ai/platform/pkg/apis/core/v1alpha1"
	"github.com/platform-ai/platform/pkg/approval/approvaltest"
	"github.com/platform-ai/platform/pkg/event"
)

func noon() time.Time { return time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC) }

func in(s v1alpha1.ApprovalState, o v1alpha1.ApprovalOutcome) func(*v1alpha1.Approval) {
	return func(a *v1alpha1.Approval) { a.Status.State, a.Status.ExecutionOutcome = s, o }
}

// inWords describes events, which must be valid and have the key of their approval.
func inWords(t *testing.T, events ...v1alpha1.ExecutionEvent) []string {
	t.Helper()
	var out []string
	for i := range events {
		e := &events[i]
		var p payload
		if err := json.Unmarshal(e.Content.Raw, &p); err != nil {
			t.Fatal(err)
		}
		key := DecisionKey(e.ToolCallID)
		if e.Type == v1alpha1.EventApprovalExecutionUpdated {
			key = OutcomeKey(e.ToolCallID, p.Outcome)
		}
		if err := event.Validate(e); err != nil || e.DedupKey != key || p.TaskUID != "u" || p.ApprovalID != e.ToolCallID {
			t.Errorf("%+v %s: %v", e, e.Content.Raw, err)
		}
		out = append(out, strings.TrimSpace(strings.Join([]string{string(e.Type), e.ToolCallID, string(p.Outcome), p.Actor, p.Reason}, " ")))
	}
	return out
}

func TestSettle(t *testing.T) {
	pending := []v1alpha1.Approval{
		approvaltest.Asked("late", 9), approvaltest.Asked("unbound", 3, func(a *v1alpha1.Approval) { a.Spec.Binding = nil }), approvaltest.Asked("old", 1, approvaltest.OfAttempt(1), approvaltest.Expiring(-time.Hour)),
		approvaltest.Asked("expired", 4, approvaltest.OfAttempt(2), approvaltest.Expiring(0)), approvaltest.Asked("in time", 5, approvaltest.OfAttempt(2), approvaltest.Expiring(time.Microsecond)),
	}
	pending[0].Spec.Binding.TaskAttempt = 2
	current := approvaltest.Tool("tool", 2)
	for id, of := range map[string]func(*v1alpha1.Approval){"changed": approvaltest.OfTool("tool", 1), "unchanged": approvaltest.OfTool("tool", 2)} {
		pending = append(pending, approvaltest.Asked(id, 10, approvaltest.OfAttempt(2), of))
	}
	waiting, over := Settle(pending, 2, noon(), func(key types.NamespacedName) *v1alpha1.Tool {
		if key != (types.NamespacedName{Namespace: "ns", Name: "drop"}) {
			t.Errorf("looked for Tool %s", key)
		}
		return current
	})
	var ids []string
	for i := range waiting {
		ids = append(ids, waiting[i].Name)
	}
	if d := cmp.Diff([]string{"unbound", "in time", "late", "unchanged"}, ids); d != "" {
		t.Errorf("waiting: %s", d)
	}
	want := []string{
		"ApprovalCancelled old   attempt 1, which asked, is over",
		"ApprovalExpired expired   there was no decision until 2026-01-01T12:00:00Z",
		`ApprovalCancelled changed   Tool "drop" changed (from generation 1 to 2), and this run would call what it was before`,
	}
	if d := cmp.Diff(want, inWords(t, over...)); d != "" {
		t.Errorf("over: %s", d)
	}
	if left, ok := NextExpiry(waiting, noon()); !ok || left != time.Microsecond {
		t.Errorf("the next expires in %s, %t", left, ok)
	}
	if left, ok := NextExpiry(waiting[:1], noon()); ok {
		t.Errorf("one that never expires does in %s", left)
	}
}

// TestVoid: an approval is void once the Tool of its name is not the one that the call would use.
func TestVoid(t *testing.T) {
	bound := approvaltest.OfTool("tool", 3)
	for name, tc := range map[string]struct {
		of  func(*v1alpha1.Approval)
		now *v1alpha1.Tool
		why string // a part of it; empty if the approval stays
	}{
		"built in":        {func(*v1alpha1.Approval) {}, nil, ""},
		"no binding":      {func(a *v1alpha1.Approval) { a.Spec.Binding = nil }, nil, ""},
		"the same":        {bound, approvaltest.Tool("tool", 3), ""},
		"changed":         {bound, approvaltest.Tool("tool", 4), "from generation 3 to 4"},
		"deleted":         {bound, nil, "was deleted"},
		"made anew":       {bound, approvaltest.Tool("other", 3), "was replaced by another of that name"},
		"changed earlier": {bound, approvaltest.Tool("tool", 9), "changed"},
	} {
		e := Void(new(approvaltest.Asked("a", 1, tc.of)), tc.now)
		if (e != nil) != (tc.why != "") || e != nil && !strings.Contains(inWords(t, *e)[0], tc.why) {
			t.Errorf("%s: %+v", name, e)
		}
	}
}

func TestEnd(t *testing.T) {
	events := End([]v1alpha1.Approval{
		approvaltest.Asked("pending", 1),
		approvaltest.Asked("other", 2, func(a *v1alpha1.Approval) { a.Spec.TaskUID = "before" }),
		approvaltest.Asked("not-started", 3, in(v1alpha1.ApprovalApproved, v1alpha1.ApprovalNotStarted)),
		approvaltest.Asked("running", 4, in(v1alpha1.ApprovalApproved, v1alpha1.ApprovalRunning)),
		approvaltest.Asked("succeeded", 5, in(v1alpha1.ApprovalApproved, v1alpha1.ApprovalSucceeded)),
		approvaltest.Asked("declined", 6, in(v1alpha1.ApprovalDeclined, "")),
	}, "u", "the task was cancelled")
	want := []string{
		"ApprovalCancelled pending   the task was cancelled",
		"ApprovalExecutionUpdated running unknown  the call began, and how it ended is unknown: the task was cancelled",
	}
	if d := cmp.Diff(want, inWords(t, events...)); d != "" {
		t.Error(d)
	}
}
