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
	waiting, over := Settle(pending, 2, noon())
	var ids []string
	for i := range waiting {
		ids = append(ids, waiting[i].Name)
	}
	if d := cmp.Diff([]string{"unbound", "in time", "late"}, ids); d != "" {
		t.Errorf("waiting: %s", d)
	}
	want := []string{
		"ApprovalCancelled old   attempt 1, which asked, is over",
		"ApprovalExpired expired   there was no decision until 2026-01-01T12:00:00Z",
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
