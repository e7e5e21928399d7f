// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package task

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/platform-ai/platform/pkg/apis/core/v1alpha1"
	"github.com/platform-ai/platform/pkg/controller/step"
	"github.com/platform-ai/platform/pkg/plan"
)

// childAPI reads and cancels the tasks that a task delegated.
type childAPI struct{ *wire }

// list returns the children of a task that a reader knows, in the order of their creation. Only what the server
// recorded makes a task a child; labels narrow the request.
func (w childAPI) list(ctx context.Context, from client.Reader, t *v1alpha1.Task) ([]v1alpha1.Task, error) {
	var tasks v1alpha1.TaskList
	err := from.List(ctx, &tasks, client.InNamespace(t.Namespace), client.MatchingLabels{v1alpha1.LabelParentTask: v1alpha1.LabelValue(t.Name)})
	if err != nil {
		return nil, fmt.Errorf("children: %w", err)
	}
	own := slices.DeleteFunc(tasks.Items, func(c v1alpha1.Task) bool { return !isChildOf(&c, t) })
	slices.SortFunc(own, func(a, b v1alpha1.Task) int { return turnOf(&a).compare(turnOf(&b)) })
	return own, nil
}

// shown returns the children that the cache has, and stored those that the server has.
func (w childAPI) shown(ctx context.Context, t *v1alpha1.Task) ([]v1alpha1.Task, error) {
	return w.list(ctx, w.Client, t)
}

func (w childAPI) stored(ctx context.Context, t *v1alpha1.Task) ([]v1alpha1.Task, error) {
	return w.list(ctx, w.live, t)
}

// owned returns the tasks that have an owner reference to the task: its children that were not detached, and the runs of its
// schedule. All of them were created after the task. Others are left out, so that tasks which somebody made own each other do
// not wait for each other.
func (w childAPI) owned(ctx context.Context, t *v1alpha1.Task) ([]v1alpha1.Task, error) {
	var tasks v1alpha1.TaskList
	err := w.live.List(ctx, &tasks, client.InNamespace(t.Namespace), client.MatchingLabels{v1alpha1.LabelParentTask: v1alpha1.LabelValue(t.Name)})
	if err != nil {
		return nil, fmt.Errorf("owned tasks: %w", err)
	}
	return slices.DeleteFunc(tasks.Items, func(c v1alpha1.Task) bool {
		owns := slices.ContainsFunc(c.OwnerReferences, func(o metav1.OwnerReference) bool { return o.UID == t.UID })
		return !owns || turnOf(&c).compare(turnOf(t)) < 0
	}), nil
}

// cancelBelow cancels everything that the task delegated.
func (w childAPI) cancelBelow(ctx context.Context, t *v1alpha1.Task, why string) error {
	if len(why) > 1000 {
		why = why[:1000]
	}
	err := w.group.Post().Namespace(t.Namespace).Resource("tasks").Name(t.Name).SubResource("cancel").
		Body(&v1alpha1.TaskCancellation{Reason: strings.ToValidUTF8(why, ""), DescendantsOnly: true}).Do(ctx).Error()
	if err != nil {
		return fmt.Errorf("cancel children: %w", err)
	}
	return nil
}

// parent returns the parent of a delegated task and its agent, as far as the cache knows them; nil for what does not
// exist.
func (w childAPI) parent(ctx context.Context, t *v1alpha1.Task) (*v1alpha1.Task, *v1alpha1.Agent, error) {
	d := t.Status.Delegation
	parent := &v1alpha1.Task{}
	err := w.Get(ctx, types.NamespacedName{Namespace: t.Namespace, Name: d.Parent}, parent)
	if client.IgnoreNotFound(err) != nil {
		return nil, nil, fmt.Errorf("parent: %w", err)
	}
	if err != nil || parent.UID != d.ParentUID {
		return nil, nil, nil //nolint:nilerr // it does not exist
	}
	agent, err := w.agentOf(ctx, parent)
	if err != nil {
		return nil, nil, fmt.Errorf("agent of parent: %w", err)
	}
	return parent, agent, nil
}

// agentOf returns the agent of a task, as far as the cache knows it; nil if the task has none or it does not exist.
func (w childAPI) agentOf(ctx context.Context, t *v1alpha1.Task) (*v1alpha1.Agent, error) {
	ref := t.Spec.AgentRef
	if ref == nil {
		return nil, nil //nolint:nilnil // none
	}
	key := types.NamespacedName{Namespace: t.Namespace, Name: ref.Name}
	if ref.Namespace != "" {
		key.Namespace = ref.Namespace
	}
	agent := &v1alpha1.Agent{}
	if err := w.Get(ctx, key, agent); err != nil {
		return nil, client.IgnoreNotFound(err)
	}
	return agent, nil
}

// isChildOf reports whether the server recorded that t delegated c.
func isChildOf(c, t *v1alpha1.Task) bool {
	d := c.Status.Delegation
	return d != nil && d.ParentUID == t.UID
}

// belongs reports whether a task still belongs to the task that delegated it.
func belongs(t *v1alpha1.Task) bool {
	d := t.Status.Delegation
	return d != nil && !d.Detached
}

// delegated applies the rules of delegation to a child that is about to start: they may have changed since it was
// created. It returns how many siblings may run at once.
type delegated struct {
	parent  func(context.Context, *v1alpha1.Task) (*v1alpha1.Task, *v1alpha1.Agent, error)
	agentOf func(context.Context, *v1alpha1.Task) (*v1alpha1.Agent, error)
}

func (s delegated) check(ctx context.Context, t *v1alpha1.Task) (siblings int, err error) {
	parent, coordinator, err := s.parent(ctx, t)
	if err != nil {
		return 0, err
	}
	switch {
	case parent == nil:
		return 0, &refusal{reason: v1alpha1.ReasonParentEnded, message: messagef("the parent %q is gone", t.Status.Delegation.Parent), cancelled: true}
	case parent.Status.Phase.Terminal():
		return 0, &refusal{reason: v1alpha1.ReasonParentEnded, message: messagef("the parent %q is %s", parent.Name, parent.Status.Phase), cancelled: true}
	}
	agent, err := s.agentOf(ctx, t)
	if err != nil {
		return 0, fmt.Errorf("agent: %w", err)
	}
	if r := plan.CheckDelegation(parent, coordinator, t, agent, t.Status.Delegation.Depth); r != nil {
		return 0, &refusal{reason: r.Reason, message: r.Message}
	}
	return plan.MaxChildren(coordinator), nil
}

const (
	// shownChildren is how many children a task's status lists.
	shownChildren = 500
	// shownResult is how much of a child's result a task's status has, in characters.
	shownResult = 500
)

// children keeps status.childTasks of the tasks at the top of a tree up to date.
type children struct {
	shown func(context.Context, *v1alpha1.Task) ([]v1alpha1.Task, error)
	// result returns what the worker submitted, if anything.
	result func(context.Context, *v1alpha1.Task) (text string, ok bool, err error)
}

func (s children) do(ctx context.Context, t *v1alpha1.Task) error {
	if _, child := t.Labels[v1alpha1.LabelParentTask]; child || !t.Status.HasChildren {
		return nil
	}
	list, err := s.shown(ctx, t)
	if err != nil {
		return err
	}
	rows := make([]v1alpha1.ChildTask, 0, len(list))
	for i := range list[:min(len(list), shownChildren)] {
		r, err := s.row(ctx, t, &list[i])
		if err != nil {
			return err
		}
		rows = append(rows, r)
	}
	t.Status.ChildTasks = rows
	return nil
}

// row describes a child. The result of one that succeeded never changes, so it is read once.
func (s children) row(ctx context.Context, t, c *v1alpha1.Task) (v1alpha1.ChildTask, error) {
	r := v1alpha1.ChildTask{Name: c.Name, Phase: c.Status.Phase}
	if r.Phase == "" {
		r.Phase = v1alpha1.TaskPending
	}
	if ref := c.Spec.AgentRef; ref != nil {
		r.Agent = ref.Name
	}
	if r.Phase != v1alpha1.TaskSucceeded {
		return r, nil
	}
	known := func(old v1alpha1.ChildTask) bool { return old.Name == r.Name && old.Phase == r.Phase }
	if at := slices.IndexFunc(t.Status.ChildTasks, known); at >= 0 {
		return t.Status.ChildTasks[at], nil
	}
	text, _, err := s.result(ctx, c)
	if err != nil {
		return r, err
	}
	if runes := []rune(text); len(runes) > shownResult {
		text = string(runes[:shownResult]) + "..."
	}
	r.Result = text
	return r, nil
}

// offspring ends the work of a task with regard to what it delegated.
type offspring struct {
	stored      func(context.Context, *v1alpha1.Task) ([]v1alpha1.Task, error)
	cancelBelow func(ctx context.Context, t *v1alpha1.Task, why string) error
}

// before returns an endFunc that ends a task only when its children have ended or were detached.
func (s offspring) before(end endFunc) endFunc {
	return func(ctx context.Context, t *v1alpha1.Task, o outcome) error {
		if t.Status.HasChildren {
			waits, err := s.settle(ctx, t, o)
			if err != nil {
				return err
			}
			if waits {
				return step.ErrDone // the end of a child will wake the task
			}
		}
		return end(ctx, t, o)
	}
}

// settle reports whether the task must wait with its end. A task that succeeded waits for its children; in all other
// cases they are cancelled.
func (s offspring) settle(ctx context.Context, t *v1alpha1.Task, o outcome) (waits bool, err error) {
	if o.phase != v1alpha1.TaskSucceeded {
		return false, s.cancelBelow(ctx, t, "the task above ended: "+o.message)
	}
	list, err := s.stored(ctx, t)
	if err != nil {
		return false, err
	}
	live := alive(list)
	if len(live) == 0 {
		waitsForNoChild(t, v1alpha1.ReasonChildrenEnded, "all delegated tasks have ended or were detached")
		return false, nil
	}
	message := messagef("the work is done; %d delegated tasks have not ended: %s", len(live), strings.Join(live[:min(len(live), 5)], ", "))
	t.Status.Message = message
	setCondition(&t.Status, t.Generation, v1alpha1.ConditionWaitingForChildren, metav1.ConditionTrue, v1alpha1.ReasonChildrenActive, message)
	return true, nil
}

// alive returns the names of the children that belong to their parent and have not ended.
func alive(children []v1alpha1.Task) []string {
	var names []string
	for i := range children {
		if c := &children[i]; belongs(c) && !c.Status.Phase.Terminal() {
			names = append(names, c.Name)
		}
	}
	return names
}

// waitsForNoChild reverts what settle reported.
func waitsForNoChild(t *v1alpha1.Task, reason, message string) {
	if meta.IsStatusConditionTrue(t.Status.Conditions, v1alpha1.ConditionWaitingForChildren) {
		setCondition(&t.Status, t.Generation, v1alpha1.ConditionWaitingForChildren, metav1.ConditionFalse, reason, message)
	}
}
