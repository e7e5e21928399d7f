// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package task

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/platform-ai/platform/pkg/apis/core/v1alpha1"
	"github.com/platform-ai/platform/pkg/controller/executor"
	"github.com/platform-ai/platform/pkg/controller/step"
	"github.com/platform-ai/platform/pkg/readmodel/approval"
)

// parked goes before the step run. While an approval of the current attempt is
// pending the task is parked: its condition and message say so, its timeout does
// not run, and it takes no slot. What nobody decided in time expires here, and
// what an earlier attempt left pending is cancelled.
type parked struct {
	now func() time.Time
	// park has the executor count the time of a run, or not.
	park func(ctx context.Context, r executor.Ref, parked bool) error
	// pending lists pending approvals of a task, as far as the cache knows.
	pending func(context.Context, *v1alpha1.Task) ([]v1alpha1.Approval, error)
	append  appendFunc
	next    func(context.Context, *v1alpha1.Task) error
}

func (s parked) do(ctx context.Context, t *v1alpha1.Task) error {
	if t.Status.Phase != v1alpha1.TaskRunning {
		return s.next(ctx, t)
	}
	pending, err := s.settle(ctx, t)
	if err != nil {
		return err
	}
	err = s.park(ctx, runRef(t), len(pending) > 0)
	if err != nil && !errors.Is(err, executor.ErrNotFound) { // not started yet, or gone
		return fmt.Errorf("park: %w", err)
	}
	tellParked(t, pending)
	err = s.next(ctx, t)
	if at := firstExpiry(pending); at != nil && t.Status.Phase == v1alpha1.TaskRunning && errors.Is(err, step.ErrDone) {
		return step.Wait{After: max(at.Sub(s.now()), time.Millisecond), Reason: "an approval expires"} // 0 would be never
	}
	return err
}

// settle ends the approvals that are over without a decision, and returns the
// others in the order in which they were asked for.
func (s parked) settle(ctx context.Context, t *v1alpha1.Task) ([]v1alpha1.Approval, error) {
	pending, err := s.pending(ctx, t)
	if err != nil {
		return nil, err
	}
	var over []v1alpha1.ExecutionEvent
	pending = slices.DeleteFunc(pending, func(a v1alpha1.Approval) bool {
		switch at, b := a.Spec.ExpiresAt, a.Spec.Binding; {
		case b != nil && b.TaskAttempt > 0 && b.TaskAttempt < t.Status.Attempts:
			over = append(over, approvalCancelled(&a, messagef("attempt %d, which asked, is over", b.TaskAttempt)))
		case at != nil && !s.now().Before(at.Time):
			over = append(over, *approval.DecisionEvent(v1alpha1.EventApprovalExpired, a.Name, approval.Decision{
				Reason: "there was no decision until " + at.UTC().Format(time.RFC3339), TaskUID: t.UID, Tool: a.Spec.TargetTool,
			}))
		default:
			return false
		}
		return true
	})
	slices.SortFunc(pending, func(a, b v1alpha1.Approval) int { return cmp.Compare(a.Status.RequestedSeq, b.Status.RequestedSeq) })
	if len(over) == 0 {
		return pending, nil
	}
	return pending, s.append(ctx, t, over...)
}

func firstExpiry(pending []v1alpha1.Approval) *metav1.MicroTime {
	var first *metav1.MicroTime
	for i := range pending {
		if at := pending[i].Spec.ExpiresAt; at != nil && (first == nil || at.Before(first)) {
			first = at
		}
	}
	return first
}

// tellParked makes the task's status tell what it waits for.
func tellParked(t *v1alpha1.Task, pending []v1alpha1.Approval) {
	if len(pending) == 0 {
		notParked(t, v1alpha1.ReasonApprovalDecided, "no approval is pending")
		return
	}
	a := &pending[0]
	message := messagef("waiting for approval %s to call %s", a.Name, a.Spec.TargetTool)
	if a.Spec.Action != "" {
		message += ": " + a.Spec.Action
	}
	if more := len(pending) - 1; more > 0 {
		message += messagef(" (and %d more)", more)
	}
	t.Status.Message = message
	setCondition(&t.Status, t.Generation, v1alpha1.ConditionWaitingForApproval, metav1.ConditionTrue, v1alpha1.ReasonApprovalPending, message)
}

// notParked takes back what tellParked told.
func notParked(t *v1alpha1.Task, reason, message string) {
	c := meta.FindStatusCondition(t.Status.Conditions, v1alpha1.ConditionWaitingForApproval)
	if c == nil || c.Status == metav1.ConditionFalse {
		return
	}
	if t.Status.Message == c.Message {
		t.Status.Message = ""
	}
	setCondition(&t.Status, t.Generation, v1alpha1.ConditionWaitingForApproval, metav1.ConditionFalse, reason, message)
}

func isParked(t *v1alpha1.Task) bool {
	return meta.IsStatusConditionTrue(t.Status.Conditions, v1alpha1.ConditionWaitingForApproval)
}

func approvalCancelled(a *v1alpha1.Approval, why string) v1alpha1.ExecutionEvent {
	return *approval.DecisionEvent(v1alpha1.EventApprovalCancelled, a.Name, approval.Decision{
		Reason: why, TaskUID: a.Spec.TaskUID, Tool: a.Spec.TargetTool,
	})
}

// unsettled are the events that settle the approvals of attempts that are over:
// pending ones are cancelled, and an approved call that began and did not end is
// one of which nobody knows how it went. They go into the commit that ends the attempt.
func (w *wire) unsettled(ctx context.Context, t *v1alpha1.Task, why string) ([]v1alpha1.ExecutionEvent, error) {
	var list v1alpha1.ApprovalList
	err := w.live.List(ctx, &list, client.InNamespace(t.Namespace), client.MatchingFields{"spec.taskName": t.Name})
	if err != nil {
		return nil, fmt.Errorf("approvals: %w", err)
	}
	return settling(t, list.Items, why), nil
}

func settling(t *v1alpha1.Task, all []v1alpha1.Approval, why string) []v1alpha1.ExecutionEvent {
	var events []v1alpha1.ExecutionEvent
	for i := range all {
		a := &all[i]
		switch {
		case a.Spec.TaskUID != t.UID:
		case a.Status.State == v1alpha1.ApprovalPending:
			events = append(events, approvalCancelled(a, why))
		case a.Status.ExecutionOutcome == v1alpha1.ApprovalRunning:
			events = append(events, *approval.OutcomeEvent(a.Name, approval.Outcome{
				Outcome: v1alpha1.ApprovalUnknown, Reason: "the call began, and nothing is known of its end: " + why,
				TaskUID: t.UID, Tool: a.Spec.TargetTool,
			}))
		}
	}
	return events
}

// approvalTask finds the approvals of a task's UID in the cache, which holds
// pending ones only.
const approvalTask = "spec.taskUID"

func taskOfApproval(o client.Object) []string {
	if a, ok := o.(*v1alpha1.Approval); ok {
		return []string{string(a.Spec.TaskUID)}
	}
	return nil
}

// pendingApprovals lists the pending approvals of a task that the cache knows of.
func (w *wire) pendingApprovals(ctx context.Context, t *v1alpha1.Task) ([]v1alpha1.Approval, error) {
	var list v1alpha1.ApprovalList
	if err := w.List(ctx, &list, client.InNamespace(t.Namespace), client.MatchingFields{approvalTask: string(t.UID)}); err != nil {
		return nil, fmt.Errorf("approvals: %w", err)
	}
	return list.Items, nil
}

// waitingTask wakes a task when one of its approvals becomes pending or is so no more.
func waitingTask(_ context.Context, o client.Object) []reconcile.Request {
	a, ok := o.(*v1alpha1.Approval)
	if !ok {
		return nil
	}
	return []reconcile.Request{{NamespacedName: types.NamespacedName{Namespace: a.Namespace, Name: a.Spec.TaskName}}}
}
