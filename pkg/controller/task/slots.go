// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package task

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/types"

	"github.com/platform-ai/platform/pkg/apis/core/v1alpha1"
	"github.com/platform-ai/platform/pkg/controller/step"
	"github.com/platform-ai/platform/pkg/fairshare"
)

// slots limits how many tasks run at once. It is a ledger of the tasks that hold a slot, and of
// those that wait for one. Free slots go round the namespaces that wait (see fairshare), and within a
// namespace by priority and age (see standing).
//
// A slot is taken at the moment of the decision, before anything is written, and given back
// when the cache shows that the attempt is over; no timer is involved. A free slot goes at once
// to the next task in the queue, which is then woken. So waiting tasks need not poll, and no
// other task can take the slot.
//
// The cache may lag behind the controller's writes, but never behind the ledger. Under the lock
// the ledger asks the cache whether it still shows the version of the task that a decision is
// about. Whatever the cache shows later, observe receives later.
type slots struct {
	now func() time.Time
	// shows reports whether the cache holds the task in this version.
	shows func(context.Context, *v1alpha1.Task) (bool, error)

	// mu guards what follows.
	mu sync.Mutex
	// all and namespace are the limits for all namespaces and for each one; 0 means none, and unknown that tasks wait
	// until limit is called.
	all, namespace int
	// pool is set in the ledger of a RuntimePool. A task then holds its place also while it is parked or its changes are delivered,
	// and busy limits how many of those that hold one are at work; 0 means no limit. The order of the queue is that of priority and age
	// alone.
	pool bool
	busy int
	// wake has a task reconciled; it must not block. It is nil until the work queue exists; until then unheard
	// collects the tasks to wake.
	wake    func(types.NamespacedName)
	unheard []types.NamespacedName
	held    map[types.UID]hold
	// used counts held by namespace, and says which namespace is next.
	used *fairshare.Ledger
	// kids holds, by parent, the delegated tasks that have not ended, and lent the slots of parents that have some: a
	// parent that waits for its children must not keep them from running, so it takes no slot meanwhile.
	kids map[types.UID]map[types.UID]bool
	lent map[types.UID]hold
	// waiting holds the tasks that wait for a slot.
	waiting queue
}

// unknown is a limit that is not known yet.
const unknown = -1

// hold is a slot that is taken.
type hold struct {
	namespace string
	// attempt is the attempt of the task that has the slot.
	attempt int32
	// version is the version of the task before the write that records this attempt. It is empty
	// for a slot that was given to a task in the queue that has not called take yet.
	version string
	// idle is set for a task that holds a place in a pool and is not at work.
	idle bool
}

// CheckShares returns what is wrong with how the flags --namespace-weight and --reserved-tasks divide slots, of which there are so
// many for all namespaces and for each one.
func CheckShares(s fairshare.Shares, all, namespace int) error {
	if err := fairshare.CheckWeights("namespace-weight", s.Weights); err != nil {
		return err
	}
	for name, n := range s.Reserved {
		if namespace > 0 && n > namespace {
			return fmt.Errorf("--reserved-tasks: %s=%d: a namespace may run only %d tasks (--max-tasks-per-namespace)", name, n, namespace)
		}
	}
	return fairshare.CheckReserved("reserved-tasks", s.Reserved, "max-running-tasks", all)
}

func newSlots(all, namespace int, shares fairshare.Shares, now func() time.Time, shows func(context.Context, *v1alpha1.Task) (bool, error)) *slots {
	return &slots{
		all: all, namespace: namespace, now: now, shows: shows,
		kids: map[types.UID]map[types.UID]bool{}, lent: map[types.UID]hold{},
		held: map[types.UID]hold{}, used: fairshare.NewLedger(shares), waiting: newQueue(),
	}
}

func (s *slots) unlimited() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.all == 0 && s.namespace == 0
}

// take gives the task a slot for its next attempt, or returns a queued error while it has to
// wait in the queue. It may be repeated.
func (s *slots) take(ctx context.Context, t *v1alpha1.Task) error {
	if s.unlimited() {
		return nil
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	ok, err := s.shows(ctx, t)
	if err != nil {
		return err
	}
	if !ok {
		return apierrors.NewConflict(v1alpha1.Resource("tasks"), t.Name, errors.New("the task has changed"))
	}
	s.note(t)
	s.queue(t)
	s.fill(t.UID)
	h, ok := s.held[t.UID]
	if ok && h.attempt == t.Status.Attempts+1 {
		h.version = t.ResourceVersion
		s.held[t.UID] = h
		return nil
	}
	if s.crowded(t.Namespace) {
		return queued{v1alpha1.ReasonNamespaceTaskLimitReached, step.Wait{Reason: fmt.Sprintf("the namespace runs its limit of %d tasks", s.namespace)}}
	}
	if len(s.held) < s.all {
		return queued{v1alpha1.ReasonTaskLimitReached, step.Wait{Reason: fmt.Sprintf("the free slots of the server's limit of %d tasks are reserved for other namespaces", s.all)}}
	}
	return queued{v1alpha1.ReasonTaskLimitReached, step.Wait{Reason: fmt.Sprintf("the server runs its limit of %d tasks; as they end, their slots go round the namespaces that wait", s.all)}}
}

// leave takes the task out of the queue, and gives back a slot that it was given and cannot use
// now. A slot whose attempt may have been written stays taken.
func (s *slots) leave(ctx context.Context, t *v1alpha1.Task) error {
	if s.unlimited() {
		return nil
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	ok, err := s.shows(ctx, t)
	if err != nil || !ok { // a later version decides
		return err
	}
	s.waiting.remove(t.UID)
	h, ok := s.held[t.UID]
	// If the task's version is another than the one before the write, but without the attempt, the write failed.
	if ok && h.attempt == t.Status.Attempts+1 && h.version != t.ResourceVersion {
		s.release(t.UID)
	}
	s.fill("")
	return nil
}

// observe receives each version of a task that the cache shows, in order.
func (s *slots) observe(t *v1alpha1.Task) {
	if s.unlimited() {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.note(t)
	s.fill("")
}

// remember is observe for the tasks that exist at the start, which come in no particular order.
// Nothing is decided before all of them are known.
func (s *slots) remember(t *v1alpha1.Task) { s.recall(t, waitsForSlot(t)) }

func (s *slots) recall(t *v1alpha1.Task, waits bool) {
	if s.unlimited() {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.note(t)
	if waits && t.Status.Phase == v1alpha1.TaskPending {
		s.queue(t)
	}
}

// forget removes a task that is gone.
func (s *slots) forget(t *v1alpha1.Task) {
	if s.unlimited() {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.waiting.remove(t.UID)
	s.release(t.UID)
	delete(s.lent, t.UID)
	s.noteChild(t, false)
	s.fill("")
}

// limit sets the limit of a ledger that has none by namespace.
func (s *slots) limit(n int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.all = n
}

// limitPool sets the limits of the ledger of a pool, and gives away what has become free.
func (s *slots) limitPool(resident, working int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.all, s.busy = resident, working
	s.fill("")
}

// empty reports whether no task holds a slot or waits for one.
func (s *slots) empty() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.held)+len(s.lent)+len(s.kids) == 0 && s.waiting.empty()
}

func (s *slots) note(t *v1alpha1.Task) {
	if s.waiting.has(t.UID) {
		s.queue(t) // its priority may have changed
	}
	s.noteChild(t, !t.Status.Phase.Terminal() && belongs(t))
	uses := usesSlot(t)
	idle := s.pool && holdsPlace(t) && !works(t)
	uses = uses || idle
	if !uses {
		delete(s.lent, t.UID)
	} else if len(s.kids[t.UID]) > 0 {
		s.waiting.remove(t.UID)
		s.release(t.UID)
		s.lent[t.UID] = hold{namespace: t.Namespace, attempt: t.Status.Attempts, idle: idle}
		return
	}
	h, ok := s.held[t.UID]
	switch {
	case t.Status.Phase.Terminal():
		s.waiting.remove(t.UID)
		s.release(t.UID)
	case uses:
		s.waiting.remove(t.UID)
		if !ok || h.attempt <= t.Status.Attempts {
			s.hold(t.UID, hold{namespace: t.Namespace, attempt: t.Status.Attempts, idle: idle})
		}
	case ok && t.Status.Attempts >= h.attempt: // parked, or between two attempts
		s.release(t.UID)
	}
}

// usesSlot reports whether a task occupies a slot. Parked tasks do not, because others must not
// wait for a person's decision, nor do tasks whose work is done and that wait for their children. When parked tasks
// continue, more tasks than the limit may run. Suspended tasks have no run.
func usesSlot(t *v1alpha1.Task) bool {
	return (t.Status.Phase == v1alpha1.TaskRunning || t.Status.Phase == v1alpha1.TaskFinalizing) && !isParked(t) && !isSuspended(t) &&
		!meta.IsStatusConditionTrue(t.Status.Conditions, v1alpha1.ConditionWaitingForChildren)
}

// holdsPlace reports whether a task holds a place in its pool: until its attempt is over and what it changed is delivered.
func holdsPlace(t *v1alpha1.Task) bool {
	return t.Status.Phase == v1alpha1.TaskRunning || t.Status.Phase == v1alpha1.TaskFinalizing
}

// works reports whether the worker of a task is at work: the task is neither parked nor is its work done.
func works(t *v1alpha1.Task) bool { return t.Status.Phase == v1alpha1.TaskRunning && usesSlot(t) }

func (s *slots) hold(uid types.UID, h hold) {
	s.release(uid)
	s.held[uid] = h
	s.used.Hold(h.namespace)
}

func (s *slots) release(uid types.UID) {
	h, ok := s.held[uid]
	if !ok {
		return
	}
	delete(s.held, uid)
	s.used.Release(h.namespace)
}

// queue puts the task into the queue, unless it has a slot.
func (s *slots) queue(t *v1alpha1.Task) {
	if _, ok := s.held[t.UID]; !ok {
		s.waiting.put(t)
	}
}

func (s *slots) crowded(namespace string) bool {
	return s.namespace > 0 && s.used.Held(namespace) >= s.namespace
}

// free reports whether there is a free slot.
func (s *slots) free() bool {
	if s.all != 0 && len(s.held) >= s.all {
		return false
	}
	if s.busy == 0 {
		return true
	}
	working := 0
	for _, h := range s.held {
		if !h.idle {
			working++
		}
	}
	return working < s.busy
}

// fill gives free slots to the next tasks in the queue and wakes them, except for the task asks, which is being
// reconciled.
func (s *slots) fill(asks types.UID) {
	for s.free() {
		next, ok := s.next()
		if !ok {
			return
		}
		s.waiting.remove(next.uid)
		s.used.Served(next.key.Namespace)
		s.hold(next.uid, hold{namespace: next.key.Namespace, attempt: next.attempt})
		if next.uid != asks {
			s.tell(next.key)
		}
	}
}

func (s *slots) tell(key types.NamespacedName) {
	if s.wake == nil {
		s.unheard = append(s.unheard, key)
		return
	}
	s.wake(key)
}

// wakeWaiting wakes all tasks in the queue, because there is something else that they can do now.
func (s *slots) wakeWaiting() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, w := range s.waiting.places {
		s.tell(w.key)
	}
}

// next returns the waiting task that gets a free slot: of the namespace whose turn it is, the first one. If nothing decides
// between two namespaces, their first tasks are compared.
func (s *slots) next() (first waiter, found bool) {
	if s.waiting.empty() {
		return waiter{}, false
	}
	now := s.now()
	var heirs map[string]waiter
	if !s.pool {
		heirs = s.heirs(now)
	}
	for namespace := range s.waiting.lists {
		if s.crowded(namespace) || s.all > 0 && !s.used.MayTake(namespace, s.all-len(s.held)) {
			continue
		}
		w, ok := heirs[namespace]
		if !ok {
			w = s.waiting.first(namespace, now)
		}
		turn := 0
		if found {
			turn = s.used.Compare(namespace, first.key.Namespace)
		}
		if !found || turn < 0 || turn == 0 && w.before(first, now) {
			first, found = w, true
		}
	}
	return first, found
}

// wakeBy sets the function that wakes tasks.
func (s *slots) wakeBy(wake func(types.NamespacedName)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.wake = wake
	for _, key := range s.unheard {
		wake(key)
	}
	s.unheard = nil
}
