// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package approval

import (
	"cmp"
	"context"
	"errors"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apiserver/pkg/endpoints/request"
	"k8s.io/klog/v2"

	"github.com/platform-ai/platform/pkg/apis/core/v1alpha1"
	"github.com/platform-ai/platform/pkg/approval"
	"github.com/platform-ai/platform/pkg/server/registry/resource"
)

type parent = resource.Parent[*v1alpha1.Approval]

// prepare copies the approval's request into the decision, so that policies can compare the two. It
// replaces whatever the client sent there.
func prepare(_ context.Context, p parent, obj runtime.Object) error {
	d, ok := obj.(*v1alpha1.ApprovalDecision)
	if !ok {
		return apierrors.NewBadRequest(fmt.Sprintf("the body must be an ApprovalDecision, not %T", obj))
	}
	d.Spec.Approval = p.Object.Spec.DeepCopy()
	return nil
}

// decide ends an approval. RBAC and policies determine who may do so. If several callers decide,
// the event log keeps one decision.
func (v *view) decide(ctx context.Context, p parent, obj runtime.Object) (runtime.Object, error) {
	d, ok := obj.(*v1alpha1.ApprovalDecision)
	if !ok {
		return nil, apierrors.NewBadRequest(fmt.Sprintf("the body must be an ApprovalDecision, not %T", obj))
	}
	actor, err := decider(ctx, p.Object.Name)
	if err != nil {
		return nil, err
	}
	verdict, err := approval.Verdict(&d.Spec)
	if err != nil {
		return nil, apierrors.NewBadRequest(err.Error())
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
		return settled(a, verdict)
	}
	if verdict == v1alpha1.EventApprovalApproved && meta.IsStatusConditionTrue(t.Status.Conditions, v1alpha1.ConditionCancelRequested) {
		return nil, conflict(a.Name, fmt.Sprintf("task %q was cancelled, so the call will not be made", t.Name))
	}
	e := approval.Decide(a, verdict, actor, d.Spec.Reason, v.clock.Now())
	if e.Type == v1alpha1.EventApprovalApproved {
		void, err := v.void(ctx, a)
		if err != nil {
			return nil, err
		}
		e = cmp.Or(void, e)
	}
	if p.DryRun {
		a = a.DeepCopy()
		a.Status.State = approval.StateOf(e.Type)
		return settled(a, verdict)
	}
	if err := v.tasks.Decide(ctx, t, e); err != nil {
		return nil, err
	}
	if a, err = v.get(ctx, a.Name); err != nil { // the current state, whoever decided first
		return nil, err
	}
	v.nudge(ctx, t, a)
	return settled(a, verdict)
}

// void returns the event that ends an approval whose Tool has changed, or nil.
func (v *view) void(ctx context.Context, a *v1alpha1.Approval) (*v1alpha1.ExecutionEvent, error) {
	key, ok := approval.ToolOf(a)
	if !ok {
		return nil, nil //nolint:nilnil // nothing ends it
	}
	now, err := v.tool(request.WithNamespace(ctx, key.Namespace), key.Name)
	if apierrors.IsNotFound(err) {
		now, err = nil, nil
	}
	if err != nil {
		return nil, err
	}
	return approval.Void(a, now), nil
}

// decider returns the caller's name.
func decider(ctx context.Context, name string) (string, error) {
	u, ok := request.UserFrom(ctx)
	if !ok || u.GetName() == "" {
		return "", apierrors.NewForbidden(v1alpha1.Resource("approvals"), name, errors.New("the caller is not known"))
	}
	return u.GetName(), nil
}

// openTask returns the task that waits for the decision. The error says that it no longer waits.
func (v *view) openTask(ctx context.Context, a *v1alpha1.Approval) (*v1alpha1.Task, error) {
	t, err := v.tasks.Get(ctx, a.Spec.TaskName)
	if apierrors.IsNotFound(err) || err == nil && t.UID != a.Spec.TaskUID {
		return nil, notFound(a.Name) // an approval is deleted together with its task
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

// settled answers a decision about an approval that has ended. Repeating the same decision is no
// error; a different one is a conflict.
func settled(a *v1alpha1.Approval, verdict v1alpha1.EventType) (runtime.Object, error) {
	if why := approval.Refused(a, verdict); why != "" {
		return nil, conflict(a.Name, why)
	}
	return shallow(a), nil
}

// nudge makes the watchers of the task look at it again. The decision is already in the log, so an
// error is only logged.
func (v *view) nudge(ctx context.Context, t *v1alpha1.Task, a *v1alpha1.Approval) {
	ctx = context.WithoutCancel(ctx)
	err := v.tasks.Annotate(ctx, t, func(annotations map[string]string) { approval.Note(annotations, a, v.clock.Now()) })
	if err != nil {
		klog.FromContext(ctx).Error(err, "A decision could not be recorded on its task", "task", klog.KObj(t))
	}
}
