// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package tree

import (
	"context"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apiserver/pkg/endpoints/request"

	"github.com/platform-ai/platform/pkg/apis/core/v1alpha1"
	"github.com/platform-ai/platform/pkg/server/registry/core/task/stored"
)

// leftovers knows the trees whose root is gone while another task has the root's name: a detached task outlives its root,
// and so do the tasks that a deletion keeps (propagationPolicy Orphan). Selectors by the root's name mean the
// task that has the name, so they leave such trees out. Its owner's mutex guards it.
type leftovers struct {
	// roots holds the roots of all trees by their name.
	roots map[types.NamespacedName]map[types.UID]bool
	// replaced holds, by the UID of a root that is gone, the UID of the task that has its name.
	replaced map[types.UID]types.UID
	// hidden holds the tasks below the replaced roots.
	hidden map[types.UID]bool
}

// joined notes a delegated task.
func (l *leftovers) joined(name types.NamespacedName, root, uid types.UID) {
	if l.roots == nil {
		l.roots, l.replaced, l.hidden = map[types.NamespacedName]map[types.UID]bool{}, map[types.UID]types.UID{}, map[types.UID]bool{}
	}
	if l.roots[name] == nil {
		l.roots[name] = map[types.UID]bool{}
	}
	l.roots[name][root] = true
	if l.replaced[root] != "" {
		l.hidden[uid] = true
	}
}

// left forgets a delegated task.
func (l *leftovers) left(uid types.UID) { delete(l.hidden, uid) }

// forget forgets a tree without tasks.
func (l *leftovers) forget(name types.NamespacedName, root types.UID) {
	delete(l.replaced, root)
	delete(l.roots[name], root)
	if len(l.roots[name]) == 0 {
		delete(l.roots, name)
	}
}

// named notes that a task that was not delegated has got a name, or has it no longer. The caller holds mu.
func (t *Trees) named(name types.NamespacedName, uid types.UID, has bool) {
	l := &t.leftovers
	for root := range l.roots[name] {
		switch {
		case has && root != uid:
			l.replaced[root] = uid
		case !has && l.replaced[root] == uid:
			delete(l.replaced, root)
		default:
			continue
		}
		for member := range t.members[root] {
			if has {
				l.hidden[member] = true
			} else {
				delete(l.hidden, member)
			}
		}
	}
}

// Created notes a new task.
func (t *Trees) Created(task *v1alpha1.Task) {
	if task.Status.Delegation != nil {
		return
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.named(types.NamespacedName{Namespace: task.Namespace, Name: task.Name}, task.UID, true)
}

// IsLeftover reports whether a task belongs to a tree whose root is gone while another task has the root's name. A
// selector by that name does not mean such a task, nor its events and approvals.
func (t *Trees) IsLeftover(uid types.UID) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.leftovers.hidden[uid]
}

// RootName returns the name of the task at the top of a task's tree, which is its own name if it was not delegated. It is
// empty if that task is gone and another one has the name.
func (t *Trees) RootName(task *v1alpha1.Task) string {
	if task.Status.Delegation != nil && t.IsLeftover(task.UID) {
		return ""
	}
	_, name := stored.Root(task)
	return name
}

// findLeftovers looks up the root of each tree that is known, once, at the start of the server.
func (t *Trees) findLeftovers(ctx context.Context, tasks stored.Tasks) error {
	t.mu.Lock()
	var names []types.NamespacedName
	for name := range t.leftovers.roots {
		names = append(names, name)
	}
	t.mu.Unlock()
	for _, name := range names {
		for noted := types.UID(""); ; { // until what was noted was still so afterwards
			root, err := tasks.Get(request.WithNamespace(ctx, name.Namespace), name.Name)
			if err != nil && !apierrors.IsNotFound(err) {
				return err
			}
			now := types.UID("")
			if err == nil && root.Status.Delegation == nil {
				now = root.UID
			}
			if now == noted {
				break
			}
			t.mu.Lock()
			if noted != "" {
				t.named(name, noted, false)
			}
			if now != "" {
				t.named(name, now, true)
			}
			t.mu.Unlock()
			noted = now
		}
	}
	return nil
}
