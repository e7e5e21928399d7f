// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

// Package tree knows which tasks were delegated below which root, and orders what happens to a tree. It is kept in memory, which
// suffices because one process writes the store.
//
// Creations and cancellations in a tree wait for each other (locks.go). Policies and webhooks judge a child without a lock. After them,
// the create takes the lock of its tree, looks at the parent once more, and holds the lock until the child is stored. A cancellation has
// the lock alone. It therefore covers every child that was stored before it, and refuses every later one, however long webhooks take.
//
// All events of a tree have its rootTask, so its stream is one list and one watch, which is resumed at its last revision. The field
// selector rootTask means the tree of the task that has this name now. What earlier roots of the name left over is hidden while the name
// is taken, and is found by taskName; rootTaskUID selects one tree, whatever became of its root (leftovers.go).
package tree

import (
	"context"
	"slices"
	"sync"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"

	"github.com/platform-ai/platform/pkg/apis/core/v1alpha1"
	"github.com/platform-ai/platform/pkg/server/registry/core/task/stored"
)

// Trees knows which tasks were delegated below which root, and orders the creation of children and the cancellation of
// their tree. It takes about 200 bytes for each delegated task, and is filled from the store at the start.
type Trees struct {
	// locks order creations and cancellations.
	locks locks

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

// New returns trees without tasks, which are complete after Complete.
func New() *Trees { return &Trees{known: make(chan struct{})} }

// member is a delegated task.
type member struct {
	namespace, name string
	ancestors       []types.UID
}

// Creating waits for cancellations of a tree, and blocks others until the func that it returns is called.
func (t *Trees) Creating(ctx context.Context, root types.UID) (unlock func(), err error) {
	return t.locks.lock(ctx, root, false)
}

// Cancelling waits for the children that are being stored in a tree, and blocks others until the func that it returns
// is called.
func (t *Trees) Cancelling(ctx context.Context, root types.UID) (unlock func(), err error) {
	return t.locks.lock(ctx, root, true)
}

// Reserve keeps a place for one more task in a tree that may have at most a number of delegated tasks. It returns how
// many the tree has, and the func that ends the reservation once the task is a member or was not created. That func is nil
// if the tree is full.
func (t *Trees) Reserve(root types.UID, most int32) (giveBack func(), has int) {
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

// Add notes a delegated task. d is its place.
func (t *Trees) Add(namespace, name string, uid types.UID, d *v1alpha1.TaskDelegation) {
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

// Remove forgets a task that is gone.
func (t *Trees) Remove(task *v1alpha1.Task) {
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

// Children returns the names of the tasks that a task delegated, sorted.
func (t *Trees) Children(root, uid types.UID) []string {
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

// Below returns the names and UIDs of the tasks below a task, in no order.
func (t *Trees) Below(root, uid types.UID) map[types.UID]string {
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

// Root returns the UID of the root of the tree of a delegated task; empty if there is no such task. It looks at all trees.
func (t *Trees) Root(uid types.UID) types.UID {
	t.mu.Lock()
	defer t.mu.Unlock()
	for root, members := range t.members {
		if _, ok := members[uid]; ok {
			return root
		}
	}
	return ""
}

// Known waits until all delegated tasks of the store are known. The error is an API error, after the end of ctx.
func (t *Trees) Known(ctx context.Context) error {
	select {
	case <-t.known:
		return nil
	case <-ctx.Done():
		return apierrors.NewServiceUnavailable("the server has not read all tasks yet; try again")
	}
}

// Complete says that all delegated tasks of the store were added. It looks up the root of each tree.
func (t *Trees) Complete(ctx context.Context, tasks stored.Tasks) error {
	defer close(t.known)
	return t.findLeftovers(ctx, tasks)
}
