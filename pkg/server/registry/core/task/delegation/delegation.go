// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

// Package delegation decides whose child a task is. The server derives the place of a child from the stored parent when a worker creates
// the child, and records it in status.delegation. Controllers, guards and the rules of package plan believe this record. Labels,
// annotations and owner references only show it, so nobody makes a child by writing them. The rules are applied here, where the model
// can read a refusal, and those that may have changed once more by the controller before the child starts.
package delegation

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/utils/clock"

	"github.com/platform-ai/platform/pkg/apis/core/v1alpha1"
	"github.com/platform-ai/platform/pkg/plan"
	"github.com/platform-ai/platform/pkg/server/registry/core/task/prior"
	"github.com/platform-ai/platform/pkg/server/registry/core/task/requester"
	"github.com/platform-ai/platform/pkg/server/registry/core/task/stored"
	"github.com/platform-ai/platform/pkg/server/registry/core/task/tree"
	"github.com/platform-ai/platform/pkg/server/registry/rule"
)

// delegating is what the server knows about a child that a worker is creating. It travels in the context of the
// create, because the status of a new object is cleared before it is prepared.
type delegating struct {
	record      v1alpha1.TaskDelegation
	parent      *v1alpha1.Task
	coordinator string
	// giveBack ends the reservation of the child's place in its tree.
	giveBack func()
	// unlock lets cancellations of the tree go on; nil until the child is about to be stored.
	unlock func()
}

type delegatingKey struct{}

// Delegations decides about tasks that workers create. All fields are required except TreeTasks.
type Delegations struct {
	Tasks  stored.Tasks
	Agents stored.Agents
	Trees  *tree.Trees
	Clock  clock.PassiveClock
	// Inherit decides for whom a worker creates a child; see package requester.
	Inherit func(ctx context.Context, t, parent *v1alpha1.Task) (context.Context, error)
	// TreeTasks is how many tasks may be delegated in one tree, whatever the Agents allow; 0 means no limit.
	TreeTasks int32
}

// Begin decides whether a worker may create the task as a child of its own. Nothing that the worker says about
// the tree is believed: the place of the child is derived from the stored parent. Call done when the create is over.
//
// Policies and webhooks then judge the child, which may take long. Only after that, Admitted looks at the parent once more. From
// there until the child is stored, no cancellation of its tree is carried out, so a cancellation covers every child that was created
// before it, and refuses every later one.
func (r Delegations) Begin(ctx context.Context, t *v1alpha1.Task, dryRun bool) (next context.Context, done func(created bool), err error) {
	controller := metav1.GetControllerOfNoCopy(t)
	if controller == nil { // the guard requires one
		return nil, nil, apierrors.NewForbidden(v1alpha1.Resource("tasks"), t.Name, errors.New("a worker may create only tasks that its own task controls"))
	}
	if err := r.Trees.Known(ctx); err != nil {
		return nil, nil, err
	}
	now, d, err := r.delegate(ctx, controller.UID, controller.Name, t)
	if err != nil {
		return nil, nil, err
	}
	done = func(created bool) {
		if created && !dryRun {
			r.Trees.Add(t.Namespace, t.Name, t.UID, &d.record)
		}
		d.giveBack()
		if d.unlock != nil {
			d.unlock()
		}
	}
	ctx, err = r.Inherit(ctx, t, now)
	if err == nil && !dryRun {
		err = r.markParent(ctx, now)
	}
	if err != nil {
		done(false)
		return nil, nil, err
	}
	return context.WithValue(ctx, delegatingKey{}, d), done, nil
}

// Admitted keeps cancellations of the tree of a child waiting until the child is stored, unless they were faster.
func (r Delegations) Admitted(ctx context.Context, t *v1alpha1.Task) error {
	d, ok := ctx.Value(delegatingKey{}).(*delegating)
	if !ok {
		return nil
	}
	var err error
	if d.unlock, err = r.Trees.Creating(ctx, d.record.RootUID); err != nil {
		return err
	}
	_, err = r.delegator(ctx, d.record.ParentUID, d.record.Parent, t)
	return err
}

// refusalOf returns what makes the refusal of a child.
func refusalOf(t *v1alpha1.Task) func(format string, args ...any) error {
	return func(format string, args ...any) error {
		return apierrors.NewForbidden(v1alpha1.Resource("tasks"), t.Name, fmt.Errorf(format, args...))
	}
}

// delegator reads the parent of a child, which is refused if the parent starts nothing more.
func (r Delegations) delegator(ctx context.Context, uid types.UID, name string, t *v1alpha1.Task) (*v1alpha1.Task, error) {
	refuse := refusalOf(t)
	parent, err := r.Tasks.Get(ctx, name)
	switch {
	case err != nil:
		return nil, err
	case parent.UID != uid:
		return nil, refuse("the parent is gone, and another task has its name")
	case parent.DeletionTimestamp != nil:
		return nil, refuse("task %q is being deleted and starts nothing more", name)
	case parent.Status.Phase.Terminal():
		return nil, refuse("task %q has ended and starts nothing more", name)
	case meta.IsStatusConditionTrue(parent.Status.Conditions, v1alpha1.ConditionCancelRequested):
		return nil, refuse("task %q was cancelled and starts nothing more", name)
	}
	return parent, nil
}

// delegate reads the parent and applies the rules of delegation.
func (r Delegations) delegate(ctx context.Context, uid types.UID, name string, t *v1alpha1.Task) (*v1alpha1.Task, *delegating, error) {
	refuse := refusalOf(t)
	parent, err := r.delegator(ctx, uid, name, t)
	if err != nil {
		return nil, nil, err
	}
	coordinator, err := r.Agents.Of(ctx, parent)
	if err != nil {
		return nil, nil, err
	}
	depth := plan.Depth(parent) + 1
	agent, err := r.Agents.Of(ctx, t)
	if err != nil {
		return nil, nil, err
	}
	if t.Spec.Type == v1alpha1.TaskTypeAI && t.Spec.AI == nil && agent != nil && agent.Spec.Runtime != nil {
		t.Spec.Type = v1alpha1.TaskTypeAgent // the delegating agent knows a name, and not what it stands for
	}
	if refused := plan.CheckDelegation(parent, coordinator, t, agent, depth); refused != nil {
		return nil, nil, refuse("%s", refused.Message)
	}
	switch ref := t.Spec.AgentRef; {
	case ref == nil || ref.Namespace != "" && ref.Namespace != parent.Namespace: // the controller decides
	case agent == nil:
		return nil, nil, refuse("agent %q does not exist in namespace %q", ref.Name, parent.Namespace)
	}
	if list := plan.CheckChild(parent, coordinator, t, agent); len(list) > 0 {
		return nil, nil, refuse("%s: %s", list[0].Field, list[0].Message)
	}
	d := &delegating{parent: parent, coordinator: coordinator.Name, record: v1alpha1.TaskDelegation{
		Parent: parent.Name, ParentUID: parent.UID, Depth: depth, Deadline: plan.Deadline(parent),
		ApprovalRequiredTools: plan.UsesOf(parent, coordinator).Gated, Network: plan.ChildNetwork(parent, coordinator),
	}}
	d.record.RootUID, d.record.Root = stored.Root(parent)
	above := []string{plan.RequestDigest(parent)}
	if up := parent.Status.Delegation; up != nil {
		d.record.Ancestors, above = slices.Clone(up.Ancestors), slices.Clone(up.Requests)
	}
	d.record.Ancestors = append(d.record.Ancestors, parent.UID)
	own := plan.RequestDigest(t)
	if slices.Contains(above, own) {
		return nil, nil, refuse("a task above this one was asked exactly the same, so delegating it again would never end; solve it, or ask for a part of it")
	}
	d.record.Requests = slices.Concat(above, []string{own})
	if err := r.inTime(t, d.record.Deadline, refuse); err != nil {
		return nil, nil, err
	}
	return parent, d, r.join(d, coordinator, t.Name)
}

// join reserves a place for the child in its tree, or refuses it because the tree is full.
func (r Delegations) join(d *delegating, coordinator *v1alpha1.Agent, name string) error {
	limit := plan.LimitOfTree(d.parent, coordinator, r.TreeTasks)
	giveBack, has := r.Trees.Reserve(d.record.RootUID, limit.Tasks)
	if giveBack == nil {
		err := fmt.Errorf("the tree of task %q has %d delegated tasks, and %s; those that have ended count until they are deleted", d.record.Root, has, limit.By)
		refused := apierrors.NewForbidden(v1alpha1.Resource("tasks"), name, err)
		refused.ErrStatus.Details.Causes = []metav1.StatusCause{{Type: v1alpha1.ReasonTreeLimitReached, Message: err.Error()}}
		return refused
	}
	d.giveBack = giveBack
	d.record.MaxTasks = plan.LimitOfTree(d.parent, coordinator, 0).Tasks
	return nil
}

// inTime refuses a child whose timeout ends after its parent's deadline, or that has no time left.
func (r Delegations) inTime(t *v1alpha1.Task, deadline *metav1.Time, refuse func(string, ...any) error) error {
	if deadline == nil {
		return nil
	}
	left := deadline.Sub(r.Clock.Now()).Truncate(time.Second)
	switch {
	case left <= 0:
		return refuse("the parent's time is over")
	case t.Spec.Timeout.Value() > left:
		return refuse("spec.timeout: %s ends after the parent, which has %s left; use a shorter timeout or none", *t.Spec.Timeout, left)
	}
	return nil
}

// markParent records that the task has children, so that its controller looks for them before it ends the task.
func (r Delegations) markParent(ctx context.Context, parent *v1alpha1.Task) error {
	if parent.Status.HasChildren {
		return nil
	}
	_, err := r.Tasks.UpdateStored(context.WithValue(ctx, recordingKey{}, true), parent.Name, func(t *v1alpha1.Task) error {
		if t.UID != parent.UID {
			return apierrors.NewConflict(v1alpha1.Resource("tasks"), t.Name, errors.New("the task was replaced meanwhile"))
		}
		t.Status.HasChildren = true
		return nil
	})
	return err
}

// recordingKey marks a context in which the server itself changes what Keep preserves.
type recordingKey struct{}

// Keep preserves the place of a task in updates of its status: older clients do not know the fields, and no client may change them.
func Keep(ctx context.Context, t, old *v1alpha1.Task) {
	if ctx.Value(recordingKey{}) == nil {
		t.Status.Delegation = old.Status.Delegation.DeepCopy()
		t.Status.HasChildren = old.Status.HasChildren
	}
}

// Set writes the place of a new child into it: the record that everything relies on, and the labels and
// annotations that show it.
func Set(ctx context.Context, t *v1alpha1.Task) {
	d, ok := ctx.Value(delegatingKey{}).(*delegating)
	if !ok {
		return
	}
	t.Status.Delegation = d.record.DeepCopy()
	if t.Labels == nil {
		t.Labels = map[string]string{}
	}
	if t.Annotations == nil {
		t.Annotations = map[string]string{}
	}
	t.Labels[v1alpha1.LabelParentTask] = v1alpha1.LabelValue(d.parent.Name)
	t.Labels[v1alpha1.LabelCoordinator] = v1alpha1.LabelValue(d.coordinator)
	t.Labels[v1alpha1.LabelCreatedBy] = v1alpha1.LabelValue(d.parent.Name)
	for _, key := range []string{v1alpha1.LabelDelegatedAgent, v1alpha1.LabelIteration, v1alpha1.LabelIterationGroup} {
		delete(t.Labels, key)
	}
	if ref := t.Spec.AgentRef; ref != nil {
		t.Labels[v1alpha1.LabelDelegatedAgent] = v1alpha1.LabelValue(ref.Name)
		t.Labels[v1alpha1.LabelIteration], t.Labels[v1alpha1.LabelIterationGroup] = iterationOf(t, prior.Of(ctx))
	}
	delete(t.Labels, v1alpha1.LabelScheduledRun)
	t.Annotations[v1alpha1.AnnotationParentTaskName] = d.parent.Name
	t.Annotations[v1alpha1.AnnotationCoordinationDepth] = strconv.Itoa(int(d.record.Depth))
	for _, key := range requester.Keys() { // a child is work for whoever asked for its parent
		if by, ok := d.parent.Annotations[key]; ok {
			t.Annotations[key] = by
		}
	}
}

// iterationOf returns which iteration a child is, of which group: the next one of the task that it continues, if it continues one.
func iterationOf(t, continued *v1alpha1.Task) (iteration, group string) {
	if continued == nil || continued.Labels[v1alpha1.LabelIterationGroup] == "" {
		return "1", string(t.UID)
	}
	n, err := strconv.Atoi(continued.Labels[v1alpha1.LabelIteration])
	if err != nil {
		n = 1
	}
	return strconv.Itoa(n + 1), continued.Labels[v1alpha1.LabelIterationGroup]
}

// ValidateMarkers refuses changes of the labels and annotations that show the place of a delegated task.
func ValidateMarkers(t, old *v1alpha1.Task) field.ErrorList {
	if old.Status.Delegation == nil {
		return nil
	}
	var errs field.ErrorList
	for _, key := range []string{
		v1alpha1.LabelParentTask, v1alpha1.LabelCoordinator, v1alpha1.LabelCreatedBy, v1alpha1.LabelDelegatedAgent,
		v1alpha1.LabelIteration, v1alpha1.LabelIterationGroup,
	} {
		if rule.Changed(t.Labels, old.Labels, key) {
			errs = append(errs, field.Forbidden(field.NewPath("metadata", "labels").Key(key), "is set by the server on a delegated task"))
		}
	}
	for _, key := range []string{v1alpha1.AnnotationParentTaskName, v1alpha1.AnnotationCoordinationDepth} {
		if rule.Changed(t.Annotations, old.Annotations, key) {
			errs = append(errs, field.Forbidden(field.NewPath("metadata", "annotations").Key(key), "is set by the server on a delegated task"))
		}
	}
	return errs
}
