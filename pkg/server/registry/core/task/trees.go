// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package task

import (
	"context"
	"slices"
	"sync"

	"k8s.io/apimachinery/pkg/types"

	"github.com/platform-ai/platform/pkg/apis/core/v1alpha1"
)

// trees knows which tasks were delegated below which root, and orders the creation of children and the cancellation of
// their tree. It is kept in memory, about 200 bytes for each delegated task, and filled from the store at the start.
type trees struct {
	// locks order creations and cancellations.
	locks treeLocks

	// known is closed when all delegated tasks of the store are known.
	known chan struct{}

	mu sync.Mutex // guards the fields below
	// members holds the delegated tasks by the UID of their root.
	members map[types.UID]map[types.UID]member
	// beginning counts, by root, the tasks that are being created and are not members yet.
	beginning map[types.UID]int
	// leftovers knows the trees whose root is gone.
	leftovers leftovers
}

// member is a delegated task.
type member struct {
	namespace, name string
	ancestors       []types.UID
}

// creating waits for cancellations of a tree, and blocks others until the func that it returns is called.
func (t *trees) creating(ctx context.Context, root types.UID) (unlock func(), err error) {
	return t.locks.lock(ctx, root, false)
}

// cancelling waits for the children that are being stored in a tree, and blocks others until the func that it returns
// is called.
func (t *trees) cancelling(ctx context.Context, root types.UID) (unlock func(), err error) {
	return t.locks.lock(ctx, root, true)
}

// reserve keeps a place for one more task in a tree that may have at most a number of delegated tasks. It returns how
// many the tree has, and the func that ends the reservation once the task is a member or was not created. That func is nil
// if the tree is full.
func (t *trees) reserve(root types.UID, most int32) (giveBack func(), has int) {
	t.mu.Lock()
	defer t.mu.Unlock()
	has = len(t.members[root]) + t.beginning[root]
	if has >= int(most) {
		return nil, has
	}
	if t.beginning == nil {
		t.beginning = map[types.UID]int{}
	}
	t.beginning[root]++
	return func() {
		t.mu.Lock()
		defer t.mu.Unlock()
		if t.beginning[root]--; t.beginning[root] == 0 {
			delete(t.beginning, root)
		}
	}, has
}

// add notes a delegated task.
func (t *trees) add(namespace, name string, uid types.UID, d *v1alpha1.TaskDelegation) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.members == nil {
		t.members = map[types.UID]map[types.UID]member{}
	}
	if t.members[d.RootUID] == nil {
		t.members[d.RootUID] = map[types.UID]member{}
	}
	t.members[d.RootUID][uid] = member{namespace, name, slices.Clone(d.Ancestors)}
	t.leftovers.joined(types.NamespacedName{Namespace: namespace, Name: d.Root}, d.RootUID, uid)
}

// remove forgets a task that is gone.
func (t *trees) remove(task *v1alpha1.Task) {
	t.mu.Lock()
	defer t.mu.Unlock()
	d := task.Status.Delegation
	if d == nil {
		t.named(types.NamespacedName{Namespace: task.Namespace, Name: task.Name}, task.UID, false)
		return
	}
	delete(t.members[d.RootUID], task.UID)
	t.leftovers.left(task.UID)
	if len(t.members[d.RootUID]) == 0 {
		delete(t.members, d.RootUID)
		t.leftovers.forget(types.NamespacedName{Namespace: task.Namespace, Name: d.Root}, d.RootUID)
	}
}

// children returns the names of the tasks that a task delegated, sorted.
func (t *trees) children(root, uid types.UID) []string {
	t.mu.Lock()
	defer t.mu.Unlock()
	var names []string
	for _, m := range t.members[root] {
		if n := len(m.ancestors); n > 0 && m.ancestors[n-1] == uid {
			names = append(names, m.name)
		}
	}
	slices.Sort(names)
	return names
}

// below returns the names and UIDs of the tasks below a task, in no order.
func (t *trees) below(root, uid types.UID) map[types.UID]string {
	t.mu.Lock()
	defer t.mu.Unlock()
	found := map[types.UID]string{}
	for id, m := range t.members[root] {
		if slices.Contains(m.ancestors, uid) {
			found[id] = m.name
		}
	}
	return found
}
