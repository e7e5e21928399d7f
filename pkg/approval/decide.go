// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package approval

import (
	"fmt"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/platform-ai/platform/pkg/apis/core/v1alpha1"
)

// The words for a decision. The API also accepts "approved" and "declined", and ignores case.
const (
	Approve = "approve"
	Decline = "decline"
)

// Verdict parses the decision that a person sends and returns the type of the event
// that records it. The error names the field and the rule.
func Verdict(d *v1alpha1.ApprovalDecisionSpec) (v1alpha1.EventType, error) {
	if utf8.RuneCountInString(d.Reason) > MaxTextChars {
		return "", fmt.Errorf("spec.reason: must be at most %d characters", MaxTextChars)
	}
	switch strings.ToLower(strings.TrimSpace(d.Decision)) {
	case Approve, "approved":
		return v1alpha1.EventApprovalApproved, nil
	case Decline, "declined":
		return v1alpha1.EventApprovalDeclined, nil
	}
	return "", fmt.Errorf("spec.decision: must be approve, approved, decline or declined")
}

// Decide returns the event that records a verdict on a pending approval. If the verdict is too late, the
// event records that the approval expired.
func Decide(a *v1alpha1.Approval, verdict v1alpha1.EventType, actor, reason string, now time.Time) *v1alpha1.ExecutionEvent {
	if e := Expire(a, now); e != nil {
		return e
	}
	return DecisionEvent(verdict, a.Name, Decision{Actor: actor, Reason: reason, TaskUID: a.Spec.TaskUID, Tool: a.Spec.TargetTool})
}

// Refused returns why a verdict cannot apply to an approval that has ended. It returns an empty string if
// the approval ended with the same verdict: repeating a decision is not an error.
func Refused(a *v1alpha1.Approval, verdict v1alpha1.EventType) string {
	if a.Status.State == StateOf(verdict) {
		return ""
	}
	switch a.Status.State {
	case v1alpha1.ApprovalExpired:
		if at := a.Spec.ExpiresAt; at != nil {
			return "it expired at " + at.UTC().Format(time.RFC3339)
		}
		return "it expired"
	case v1alpha1.ApprovalCancelled:
		if a.Status.DecisionReason != "" {
			return "it was cancelled: " + a.Status.DecisionReason
		}
		return "it was cancelled"
	}
	why := "it was already " + string(a.Status.State)
	if a.Status.DecisionActor != "" {
		why += " by " + a.Status.DecisionActor
	}
	return why
}

// Note records the decision on an approval in the annotations of its task, so that watchers of the task
// look at it again. It changes nothing if a later decision is already recorded.
func Note(annotations map[string]string, a *v1alpha1.Approval, now time.Time) {
	if last, err := strconv.ParseInt(annotations[v1alpha1.AnnotationApprovalDecisionSeq], 10, 64); err == nil && last >= a.Status.DecisionSeq {
		return
	}
	at := now
	if a.Status.DecisionTime != nil {
		at = a.Status.DecisionTime.Time
	}
	annotations[v1alpha1.AnnotationApprovalDecidedAt] = at.UTC().Format(time.RFC3339Nano)
	annotations[v1alpha1.AnnotationApprovalDecisionID] = a.Name
	annotations[v1alpha1.AnnotationApprovalDecisionStatus] = string(a.Status.State)
	annotations[v1alpha1.AnnotationApprovalDecisionSeq] = strconv.FormatInt(a.Status.DecisionSeq, 10)
}
