// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package approval

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apiserver/pkg/endpoints/request"
	"k8s.io/klog/v2"

	"github.com/platform-ai/platform/pkg/apis/core/v1alpha1"
	"github.com/platform-ai/platform/pkg/readmodel/approval"
	"github.com/platform-ai/platform/pkg/server/registry/resource"
)

type parent = resource.Parent[*v1alpha1.Approval]

// prepare puts what is decided about into the decision, for policies to compare.
// It is the server's whatever the client sent.
func prepare(_ context.Context, p parent, obj runtime.Object) error {
	d, ok := obj.(*v1alpha1.ApprovalDecision)
	if !ok {
		return apierrors.NewBadRequest(fmt.Sprintf("the body must be an ApprovalDecision, not %T", obj))
	}
	d.Spec.Approval = p.Object.Spec.DeepCopy()
	return nil
}

// decide ends an approval. Who may do so is RBAC, and what policies say; here is
// what holds for everybody: the event log keeps one decision.
func (v *view) decide(ctx context.Context, p parent, obj runtime.Object) (runtime.Object, error) {
	d, ok := obj.(*v1alpha1.ApprovalDecision)
	if !ok {
		return nil, apierrors.NewBadRequest(fmt.Sprintf("the body must be an ApprovalDecision, not %T", obj))
	}
	actor, err := decider(ctx, p.Object.Name)
	if err != nil {
		return nil, err
	}
	word, err := checkDecision(&d.Spec)
	if err != nil {
		return nil, err
	}
	if d.Spec.TaskName != "" && d.Spec.TaskName != p.Object.Spec.TaskName {
		return nil, notFound(p.Object.Name)
	}
	t, err := v.openTask(ctx, p.Object)
	if err != nil {
		return nil, err
	}
	a := p.Object
	if a.Status.State != v1alpha1.ApprovalPending {
		return settled(a, word)
	}
	e := approval.DecisionEvent(word, a.Name, approval.Decision{
		Actor: actor, Reason: d.Spec.Reason, TaskUID: a.Spec.TaskUID, Tool: a.Spec.TargetTool,
	})
	if at := a.Spec.ExpiresAt; at != nil && !v.clock.Now().Before(at.Time) {
		e = approval.DecisionEvent(v1alpha1.EventApprovalExpired, a.Name, approval.Decision{
			Reason: "there was no decision until " + at.UTC().Format(time.RFC3339), TaskUID: a.Spec.TaskUID, Tool: a.Spec.TargetTool,
		})
	}
	if p.DryRun {
		a = a.DeepCopy()
		a.Status.State = approval.StateOf(e.Type)
		return settled(a, word)
	}
	if err := v.tasks.Decide(ctx, t, e); err != nil {
		return nil, err
	}
	if a, err = v.get(ctx, a.Name); err != nil { // as it is now, whoever was first
		return nil, err
	}
	v.nudge(ctx, t, a)
	return settled(a, word)
}

// decider is the caller's name.
func decider(ctx context.Context, name string) (string, error) {
	u, ok := request.UserFrom(ctx)
	if !ok || u.GetName() == "" {
		return "", apierrors.NewForbidden(v1alpha1.Resource("approvals"), name, errors.New("the caller is not known"))
	}
	return u.GetName(), nil
}

// checkDecision checks the body and returns the type of the event that it asks for.
func checkDecision(d *v1alpha1.ApprovalDecisionSpec) (v1alpha1.EventType, error) {
	if utf8.RuneCountInString(d.Reason) > approval.MaxTextChars {
		return "", apierrors.NewBadRequest(fmt.Sprintf("spec.reason: must be at most %d characters", approval.MaxTextChars))
	}
	switch strings.ToLower(strings.TrimSpace(d.Decision)) {
	case "approve", "approved":
		return v1alpha1.EventApprovalApproved, nil
	case "decline", "declined":
		return v1alpha1.EventApprovalDeclined, nil
	}
	return "", apierrors.NewBadRequest("spec.decision: must be approve, approved, decline or declined")
}

// openTask is the task that waits for the decision, as long as it can.
func (v *view) openTask(ctx context.Context, a *v1alpha1.Approval) (*v1alpha1.Task, error) {
	t, err := v.tasks.Get(ctx, a.Spec.TaskName)
	if apierrors.IsNotFound(err) || err == nil && t.UID != a.Spec.TaskUID {
		return nil, notFound(a.Name) // it goes with its task
	}
	switch {
	case err != nil:
		return nil, err
	case t.DeletionTimestamp != nil:
		return nil, &apierrors.StatusError{ErrStatus: metav1.Status{
			Status: metav1.StatusFailure, Code: 410, Reason: metav1.StatusReasonGone,
			Message: fmt.Sprintf("task %q is being deleted", t.Name),
			Details: &metav1.StatusDetails{Group: v1alpha1.GroupName, Kind: "approvals", Name: a.Name, UID: a.UID},
		}}
	case t.Status.Phase.Terminal():
		return nil, conflict(a.Name, fmt.Sprintf("task %q has ended: it is %s", t.Name, t.Status.Phase))
	}
	return t, nil
}

func conflict(name, why string) error {
	return apierrors.NewConflict(v1alpha1.Resource("approvals"), name, errors.New(why))
}

// settled answers a decision about an approval that is decided: the same one
// again is fine, another one is a conflict.
func settled(a *v1alpha1.Approval, word v1alpha1.EventType) (runtime.Object, error) {
	if a.Status.State == approval.StateOf(word) {
		return shallow(a), nil
	}
	switch a.Status.State {
	case v1alpha1.ApprovalExpired:
		if at := a.Spec.ExpiresAt; at != nil {
			return nil, conflict(a.Name, "it expired at "+at.UTC().Format(time.RFC3339))
		}
		return nil, conflict(a.Name, "it expired")
	case v1alpha1.ApprovalCancelled:
		return nil, conflict(a.Name, "it was cancelled")
	}
	why := "it was already " + string(a.Status.State)
	if a.Status.DecisionActor != "" {
		why += " by " + a.Status.DecisionActor
	}
	return nil, conflict(a.Name, why)
}

// nudge makes whoever watches the task look again. What it says is in the log
// already, so an error is only logged.
func (v *view) nudge(ctx context.Context, t *v1alpha1.Task, a *v1alpha1.Approval) {
	ctx = context.WithoutCancel(ctx)
	err := v.tasks.Annotate(ctx, t, func(set map[string]string) {
		if last, err := strconv.ParseInt(set[v1alpha1.AnnotationApprovalDecisionSeq], 10, 64); err == nil && last >= a.Status.DecisionSeq {
			return // a later decision was noted first
		}
		at := v.clock.Now()
		if a.Status.DecisionTime != nil {
			at = a.Status.DecisionTime.Time
		}
		set[v1alpha1.AnnotationApprovalDecidedAt] = at.UTC().Format(time.RFC3339Nano)
		set[v1alpha1.AnnotationApprovalDecisionID] = a.Name
		set[v1alpha1.AnnotationApprovalDecisionStatus] = string(a.Status.State)
		set[v1alpha1.AnnotationApprovalDecisionSeq] = strconv.FormatInt(a.Status.DecisionSeq, 10)
	})
	if err != nil {
		klog.FromContext(ctx).Error(err, "A task was not told of a decision", "task", klog.KObj(t))
	}
}
