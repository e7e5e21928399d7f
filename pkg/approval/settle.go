// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package approval

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/platform-ai/platform/pkg/apis/core/v1alpha1"
)

// Left returns the time that remains for a decision. It is zero or negative if the approval has expired. ok
// is false if the approval never expires.
func Left(a *v1alpha1.Approval, now time.Time) (left time.Duration, ok bool) {
	if a.Spec.ExpiresAt == nil {
		return 0, false
	}
	return a.Spec.ExpiresAt.Sub(now), true
}

// Expire returns the event that ends a pending approval after its time has run out, or nil while a decision
// is still in time. The controller appends it at the time of expiry. The server appends it in place of a
// decision that arrives before the controller's event.
func Expire(a *v1alpha1.Approval, now time.Time) *v1alpha1.ExecutionEvent {
	if left, ok := Left(a, now); !ok || left > 0 {
		return nil
	}
	return DecisionEvent(v1alpha1.EventApprovalExpired, a.Name, Decision{
		Reason:  "there was no decision until " + a.Spec.ExpiresAt.UTC().Format(time.RFC3339),
		TaskUID: a.Spec.TaskUID, Tool: a.Spec.TargetTool,
	})
}

// Cancel returns the event that ends a pending approval because nothing waits for it any more.
func Cancel(a *v1alpha1.Approval, why string) *v1alpha1.ExecutionEvent {
	return DecisionEvent(v1alpha1.EventApprovalCancelled, a.Name, Decision{Reason: why, TaskUID: a.Spec.TaskUID, Tool: a.Spec.TargetTool})
}

// Settle sorts the pending approvals of a task whose given attempt is running. waiting are those that wait
// for a decision, in the order of the requests. over are the events that end the others: those of earlier
// attempts are cancelled, and those without a decision in time expire.
func Settle(pending []v1alpha1.Approval, attempt int32, now time.Time) (waiting []v1alpha1.Approval, over []v1alpha1.ExecutionEvent) {
	for i := range pending {
		a := &pending[i]
		if b := a.Spec.Binding; b != nil && b.TaskAttempt > 0 && b.TaskAttempt < attempt {
			over = append(over, *Cancel(a, fmt.Sprintf("attempt %d, which asked, is over", b.TaskAttempt)))
		} else if e := Expire(a, now); e != nil {
			over = append(over, *e)
		} else {
			waiting = append(waiting, *a)
		}
	}
	slices.SortFunc(waiting, func(a, b v1alpha1.Approval) int { return cmp.Compare(a.Status.RequestedSeq, b.Status.RequestedSeq) })
	return waiting, over
}

// NextExpiry returns the time until the first of the approvals expires. ok is false if none expires.
func NextExpiry(waiting []v1alpha1.Approval, now time.Time) (left time.Duration, ok bool) {
	for i := range waiting {
		if l, expires := Left(&waiting[i], now); expires && (!ok || l < left) {
			left, ok = l, true
		}
	}
	return left, ok
}

// End returns the events that settle the approvals of a task when its attempt ends. Pending approvals are
// cancelled. The outcome of an approved call that began and did not end becomes unknown. The events belong
// in the commit that ends the attempt. Approvals of other tasks are ignored.
func End(all []v1alpha1.Approval, task types.UID, why string) []v1alpha1.ExecutionEvent {
	var events []v1alpha1.ExecutionEvent
	for i := range all {
		a := &all[i]
		switch {
		case a.Spec.TaskUID != task:
		case a.Status.State == v1alpha1.ApprovalPending:
			events = append(events, *Cancel(a, why))
		case a.Status.ExecutionOutcome == v1alpha1.ApprovalRunning:
			events = append(events, *OutcomeEvent(a.Name, Outcome{
				Outcome: v1alpha1.ApprovalUnknown, Reason: "the call began, and how it ended is unknown: " + why,
				TaskUID: task, Tool: a.Spec.TargetTool,
			}))
		}
	}
	return events
}
