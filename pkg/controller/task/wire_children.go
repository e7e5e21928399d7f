// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package task

import (
	"context"
	"fmt"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/platform-ai/platform/pkg/apis/core/v1alpha1"
)

// childAPI reads and cancels the tasks that a task delegated.
type childAPI struct{ *wire }

// parentIndex finds tasks in the cache by the value of their label for the parent. A look-up by the label alone would read all
// tasks of the namespace, for each task that is reconciled.
const parentIndex = "parent"

// parentOf returns the keys of a task in parentIndex.
func parentOf(o client.Object) []string {
	if parent := o.GetLabels()[v1alpha1.LabelParentTask]; parent != "" {
		return []string{parent}
	}
	return nil
}

// below selects, from the cache, the tasks with the label of a child of t.
func below(t *v1alpha1.Task) client.MatchingFields {
	return client.MatchingFields{parentIndex: v1alpha1.LabelValue(t.Name)}
}

// list returns the children of a task that a reader knows, in the order of their creation. Only what the server
// recorded makes a task a child; labels narrow the request.
func (childAPI) list(ctx context.Context, from client.Reader, t *v1alpha1.Task, narrow client.ListOption) ([]v1alpha1.Task, error) {
	var tasks v1alpha1.TaskList
	err := from.List(ctx, &tasks, client.InNamespace(t.Namespace), narrow)
	if err != nil {
		return nil, fmt.Errorf("children: %w", err)
	}
	own := slices.DeleteFunc(tasks.Items, func(c v1alpha1.Task) bool { return !isChildOf(&c, t) })
	slices.SortFunc(own, func(a, b v1alpha1.Task) int { return turnOf(&a).compare(turnOf(&b)) })
	return own, nil
}

// shown returns the children that the cache has, and stored those that the server has.
func (w childAPI) shown(ctx context.Context, t *v1alpha1.Task) ([]v1alpha1.Task, error) {
	return w.list(ctx, w.Client, t, below(t))
}

func (w childAPI) stored(ctx context.Context, t *v1alpha1.Task) ([]v1alpha1.Task, error) {
	return w.list(ctx, w.live, t, client.MatchingLabels{v1alpha1.LabelParentTask: v1alpha1.LabelValue(t.Name)})
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
	agent, err := agentAPI(w).agentOf(ctx, parent)
	if err != nil {
		return nil, nil, fmt.Errorf("agent of parent: %w", err)
	}
	return parent, agent, nil
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
