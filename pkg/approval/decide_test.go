// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package approval

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/platform-ai/platform/pkg/apis/core/v1alpha1"
	"github.com/platform-ai/platform/pkg/approval/approvaltest"
)

func TestVerdict(t *testing.T) {
	const words = "spec.decision: must be approve, approved, decline or declined"
	for _, tc := range []struct {
		word, reason, want string
	}{
		{"approve", "", "ApprovalApproved"},
		{" Approved ", strings.Repeat("ä", 1024), "ApprovalApproved"},
		{"DECLINE", "", "ApprovalDeclined"},
		{"declined", "no", "ApprovalDeclined"},
		{"", "", words},
		{"expired", "", words},
		{"approve", strings.Repeat("ä", 1025), "spec.reason: must be at most 1024 characters"},
	} {
		verdict, err := Verdict(&v1alpha1.ApprovalDecisionSpec{Decision: tc.word, Reason: tc.reason})
		got := string(verdict)
		if err != nil {
			got = err.Error()
		}
		if got != tc.want {
			t.Errorf("%q: %s, want %s", tc.word, got, tc.want)
		}
	}
}

func TestDecide(t *testing.T) {
	for _, tc := range []struct {
		name   string
		change func(*v1alpha1.Approval)
		want   string
	}{
		{"without an end", func(*v1alpha1.Approval) {}, "ApprovalApproved a  alice go on"},
		{"in time", approvaltest.Expiring(time.Microsecond), "ApprovalApproved a  alice go on"},
		{"in the moment of expiry", approvaltest.Expiring(0), "ApprovalExpired a   there was no decision until 2026-01-01T12:00:00Z"},
		{"too late", approvaltest.Expiring(-time.Hour), "ApprovalExpired a   there was no decision until 2026-01-01T11:00:00Z"},
	} {
		a := approvaltest.Asked("a", 1, tc.change)
		if d := cmp.Diff([]string{tc.want}, inWords(t, *Decide(&a, v1alpha1.EventApprovalApproved, "alice", "go on", noon()))); d != "" {
			t.Errorf("%s: %s", tc.name, d)
		}
	}
}

func TestRefused(t *testing.T) {
	for want, change := range map[string]func(*v1alpha1.Approval){
		"":                                   in(v1alpha1.ApprovalApproved, ""),
		"it was already declined":            in(v1alpha1.ApprovalDeclined, ""),
		"it was cancelled":                   in(v1alpha1.ApprovalCancelled, ""),
		"it expired":                         in(v1alpha1.ApprovalExpired, ""),
		"it expired at 2026-01-01T12:00:00Z": func(a *v1alpha1.Approval) { in(v1alpha1.ApprovalExpired, "")(a); approvaltest.Expiring(0)(a) },
		"it was already declined by bob": func(a *v1alpha1.Approval) {
			in(v1alpha1.ApprovalDeclined, "")(a)
			a.Status.DecisionActor = "bob"
		},
	} {
		a := approvaltest.Asked("a", 1, change)
		if got := Refused(&a, v1alpha1.EventApprovalApproved); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}

func TestNote(t *testing.T) {
	a := approvaltest.Asked("a", 1, in(v1alpha1.ApprovalApproved, ""), func(a *v1alpha1.Approval) { a.Status.DecisionSeq = 7 })
	got := map[string]string{"other": "x", v1alpha1.AnnotationApprovalDecisionSeq: "6"}
	Note(got, &a, noon())
	want := map[string]string{
		"other": "x", v1alpha1.AnnotationApprovalDecidedAt: "2026-01-01T12:00:00Z", v1alpha1.AnnotationApprovalDecisionID: "a",
		v1alpha1.AnnotationApprovalDecisionStatus: "approved", v1alpha1.AnnotationApprovalDecisionSeq: "7",
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Error(d)
	}
	a.Name, a.Status.DecisionTime = "b", &metav1.MicroTime{Time: noon().Add(time.Hour)}
	Note(got, &a, noon())
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("an earlier decision took the place of a later one: %s", d)
	}
	a.Status.DecisionSeq = 8
	Note(got, &a, noon())
	if got[v1alpha1.AnnotationApprovalDecisionID] != "b" || got[v1alpha1.AnnotationApprovalDecidedAt] != "2026-01-01T13:00:00Z" {
		t.Errorf("%v", got)
	}
}
