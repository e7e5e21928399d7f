// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package task

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"

	"github.com/platform-ai/platform/pkg/apis/core/v1alpha1"
	"github.com/platform-ai/platform/pkg/controller/step"
)

// slots limit how many tasks run at once: a ledger of the tasks that have one
// of the places, and of those that wait for one, in the order of their creation.
//
// A slot is taken at the moment of the decision, before anything is written, and
// given back when the cache shows that the attempt is over: exactly then, there
// is no timer. A slot that is free goes to the next task in the line at once,
// which is then woken, so nobody who waits needs to look, and nobody who comes
// later is faster.
//
// The cache may lag behind what the controller wrote, never behind what the
// ledger was told: it is asked, under the lock, whether it still shows the task
// that a decision is about. What it shows later, observe is told later.
type slots struct {
	// all and namespace are the limits; 0 is none.
	all, namespace int
	// shows reports whether the cache holds the task in this version.
	shows func(context.Context, *v1alpha1.Task) (bool, error)

	// mu guards what follows.
	mu sync.Mutex
	// wake has a task reconciled; it must not block. Until the work queue is there it is nil, and unheard is whom to wake.
	wake    func(types.NamespacedName)
	unheard []types.NamespacedName
	held    map[types.UID]hold
	// used counts held by namespace.
	used map[string]int
	// lines are the tasks that wait, by namespace, each in the order of turns.
	lines map[string][]waiter
}

// waiter is a task in a line, with the attempt that it wants a slot for.
type waiter struct {
	turn
	attempt int32
}

func (w waiter) compareTurn(t turn) int { return w.compare(t) }

// hold is a slot that is taken.
type hold struct {
	namespace string
	// attempt is the attempt of the task that has the slot.
	attempt int32
	// version is the task that was about to be written with this attempt. It is
	// empty for a slot that was given to a task in the line, which has not come yet.
	version string
}

func newSlots(all, namespace int, shows func(context.Context, *v1alpha1.Task) (bool, error)) *slots {
	return &slots{
		all: all, namespace: namespace, shows: shows,
		held: map[types.UID]hold{}, used: map[string]int{}, lines: map[string][]waiter{},
	}
}

func (s *slots) unlimited() bool { return s.all == 0 && s.namespace == 0 }

// take gives the task a slot for its next attempt, or a queued outcome while
// it has to wait in the line. It may be repeated.
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
		return apierrors.NewConflict(v1alpha1.Resource("tasks"), t.Name, errors.New("the task moved on"))
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
	return queued{v1alpha1.ReasonTaskLimitReached, step.Wait{Reason: fmt.Sprintf("the server runs its limit of %d tasks", s.all)}}
}

// leave takes the task out of the line, and gives the slot back that it was
// given and cannot use now. One whose attempt may have been written stays taken.
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
	s.unqueue(t)
	h, ok := s.held[t.UID]
	// Where another version came after the one that was to be written, the write failed.
	if ok && h.attempt == t.Status.Attempts+1 && h.version != t.ResourceVersion {
		s.release(t.UID)
	}
	s.fill("")
	return nil
}

// observe is told of each version of a task that the cache shows, in their order.
func (s *slots) observe(t *v1alpha1.Task) {
	if s.unlimited() {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.note(t)
	s.fill("")
}

// remember is observe for the tasks that there are at the start, which are told
// in no order: nothing is decided before they are all known.
func (s *slots) remember(t *v1alpha1.Task) {
	if s.unlimited() {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.note(t)
	if t.Status.Phase == v1alpha1.TaskPending && waitsForSlot(t) {
		s.queue(t)
	}
}

// forget is told of a task that is gone.
func (s *slots) forget(t *v1alpha1.Task) {
	if s.unlimited() {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.unqueue(t)
	s.release(t.UID)
	s.fill("")
}

func (s *slots) note(t *v1alpha1.Task) {
	h, ok := s.held[t.UID]
	switch {
	case t.Status.Phase.Terminal():
		s.unqueue(t)
		s.release(t.UID)
	case usesSlot(t):
		s.unqueue(t)
		if !ok || h.attempt < t.Status.Attempts {
			s.hold(t.UID, hold{namespace: t.Namespace, attempt: t.Status.Attempts})
		}
	case ok && t.Status.Attempts >= h.attempt: // parked, or between two attempts
		s.release(t.UID)
	}
}

// usesSlot leaves out parked tasks: how long a person takes must not keep
// others waiting. When they go on there may be more than the limit.
func usesSlot(t *v1alpha1.Task) bool {
	return (t.Status.Phase == v1alpha1.TaskRunning || t.Status.Phase == v1alpha1.TaskFinalizing) && !isParked(t)
}

func (s *slots) hold(uid types.UID, h hold) {
	s.release(uid)
	s.held[uid] = h
	s.used[h.namespace]++
}

func (s *slots) release(uid types.UID) {
	h, ok := s.held[uid]
	if !ok {
		return
	}
	delete(s.held, uid)
	if s.used[h.namespace]--; s.used[h.namespace] == 0 {
		delete(s.used, h.namespace)
	}
}

// queue puts the task into the line, unless it has its slot.
func (s *slots) queue(t *v1alpha1.Task) {
	if _, ok := s.held[t.UID]; ok {
		return
	}
	line := s.lines[t.Namespace]
	if at, ok := slices.BinarySearchFunc(line, turnOf(t), waiter.compareTurn); !ok {
		s.lines[t.Namespace] = slices.Insert(line, at, waiter{turnOf(t), t.Status.Attempts + 1})
	}
}

func (s *slots) unqueue(t *v1alpha1.Task) {
	line := s.lines[t.Namespace]
	if at, ok := slices.BinarySearchFunc(line, turnOf(t), waiter.compareTurn); ok {
		s.setLine(t.Namespace, slices.Delete(line, at, at+1))
	}
}

func (s *slots) setLine(namespace string, line []waiter) {
	if len(line) == 0 {
		delete(s.lines, namespace)
		return
	}
	s.lines[namespace] = line
}

func (s *slots) crowded(namespace string) bool {
	return s.namespace > 0 && s.used[namespace] >= s.namespace
}

// fill gives what is free to those who are next, and wakes them, but not the one who asks.
func (s *slots) fill(asks types.UID) {
	for s.all == 0 || len(s.held) < s.all {
		next, ok := s.next()
		if !ok {
			return
		}
		s.setLine(next.key.Namespace, s.lines[next.key.Namespace][1:])
		s.hold(next.uid, hold{namespace: next.key.Namespace, attempt: next.attempt})
		switch {
		case next.uid == asks:
		case s.wake != nil:
			s.wake(next.key)
		default:
			s.unheard = append(s.unheard, next.key)
		}
	}
}

// next is the first of those whose namespace has room.
func (s *slots) next() (first waiter, ok bool) {
	for namespace, line := range s.lines {
		if !s.crowded(namespace) && (!ok || line[0].compare(first.turn) < 0) {
			first, ok = line[0], true
		}
	}
	return first, ok
}

// wakeBy says how to wake tasks.
func (s *slots) wakeBy(wake func(types.NamespacedName)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.wake = wake
	for _, key := range s.unheard {
		wake(key)
	}
	s.unheard = nil
}
