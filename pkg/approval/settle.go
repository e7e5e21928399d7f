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
// is still in time. It is the only rule about expiry, for Settle and for Decide. The controller appends it at the
// time of expiry. The server appends it in place of a decision that arrives before the controller's event.
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

// ToolOf returns the name of the Tool that the call of an approval would use. ok is false if the approval is
// bound to none, because the tool is built in or the worker is of an earlier version.
func ToolOf(a *v1alpha1.Approval) (key types.NamespacedName, ok bool) {
	b := a.Spec.Binding
	if b == nil || b.Tool == nil {
		return key, false
	}
	return types.NamespacedName{Namespace: cmp.Or(b.Tool.Namespace, a.Namespace), Name: a.Spec.TargetTool}, true
}

// Void returns the event that ends a pending approval whose Tool is not the one that the call would use, or nil.
// now is the Tool of that name as it is stored, nil if there is none. Whoever decides looks at that Tool, and the
// run calls what the Tool was when it began. The controller appends the event when the Tool changes. The server
// appends it in place of an approval that arrives before the controller's event.
func Void(a *v1alpha1.Approval, now *v1alpha1.Tool) *v1alpha1.ExecutionEvent {
	if _, ok := ToolOf(a); !ok {
		return nil
	}
	was := a.Spec.Binding.Tool
	why := ""
	switch {
	case now == nil:
		why = "was deleted"
	case now.UID != was.UID:
		why = "was replaced by another of that name"
	case now.Generation != was.Generation:
		why = fmt.Sprintf("changed (from generation %d to %d)", was.Generation, now.Generation)
	default:
		return nil
	}
	return Cancel(a, fmt.Sprintf("Tool %q %s, and this run would call what it was before", a.Spec.TargetTool, why))
}

// Settle sorts the pending approvals of a task whose given attempt is running. tool returns the Tool of a name of
// ToolOf as it is stored, or nil. waiting are the approvals that wait for a decision, in the order of the requests.
// over are the events that end the others: those of earlier attempts, or of a Tool that is another now, are
// cancelled, and those without a decision in time expire.
func Settle(pending []v1alpha1.Approval, attempt int32, now time.Time, tool func(types.NamespacedName) *v1alpha1.Tool) (waiting []v1alpha1.Approval, over []v1alpha1.ExecutionEvent) {
	for i := range pending {
		a := &pending[i]
		if b := a.Spec.Binding; b != nil && b.TaskAttempt > 0 && b.TaskAttempt < attempt {
			over = append(over, *Cancel(a, fmt.Sprintf("attempt %d, which asked, is over", b.TaskAttempt)))
		} else if e := Expire(a, now); e != nil {
			over = append(over, *e)
		} else if e := void(a, tool); e != nil {
			over = append(over, *e)
		} else {
			waiting = append(waiting, *a)
		}
	}
	slices.SortFunc(waiting, func(a, b v1alpha1.Approval) int { return cmp.Compare(a.Status.RequestedSeq, b.Status.RequestedSeq) })
	return waiting, over
}

func void(a *v1alpha1.Approval, tool func(types.NamespacedName) *v1alpha1.Tool) *v1alpha1.ExecutionEvent {
	key, ok := ToolOf(a)
	if !ok {
		return nil
	}
	return Void(a, tool(key))
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
