// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package task

import (
	"k8s.io/apimachinery/pkg/types"

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
func (t *trees) named(name types.NamespacedName, uid types.UID, has bool) {
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

// created notes a new task.
func (t *trees) created(task *v1alpha1.Task) {
	if task.Status.Delegation != nil {
		return
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.named(types.NamespacedName{Namespace: task.Namespace, Name: task.Name}, task.UID, true)
}

// isLeftover reports whether the task belongs to a tree whose root is gone while another task has the root's name.
func (t *trees) isLeftover(uid types.UID) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.leftovers.hidden[uid]
}

// IsLeftover reports whether a task belongs to a tree whose root is gone while another task has the root's name. A
// selector by that name does not mean such a task, nor its events and approvals.
func (r *Resource) IsLeftover(uid types.UID) bool { return r.trees.isLeftover(uid) }

// Below returns the names of the tasks that exist below a root task, by their UIDs.
func (r *Resource) Below(root types.UID) map[types.UID]string { return r.trees.below(root, root) }

// RootUID returns the UID of the root of the tree of a delegated task; empty if there is no such task. It looks at all
// trees.
func (r *Resource) RootUID(uid types.UID) types.UID {
	r.trees.mu.Lock()
	defer r.trees.mu.Unlock()
	for root, members := range r.trees.members {
		if _, ok := members[uid]; ok {
			return root
		}
	}
	return ""
}

// rootName returns the name of the task at the top of a task's tree, which is its own name if it was not delegated. It is
// empty if that task is gone and another one has the name.
func (t *trees) rootName(task *v1alpha1.Task) string {
	if task.Status.Delegation != nil && t.isLeftover(task.UID) {
		return ""
	}
	_, name := stored.Root(task)
	return name
}
