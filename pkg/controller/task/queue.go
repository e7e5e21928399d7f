// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package task

import (
	"cmp"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/types"

	"github.com/platform-ai/platform/pkg/apis/core/v1alpha1"
)

// The description of TaskSpec.Priority states these rules to users.
const (
	// defaultPriority is the priority of a task that was stored without one.
	defaultPriority = 500
	maxPriority     = 1000
	// A task gains agePoints for each full ageStep that it has waited (see waitsSince), up to maxPriority.
	agePoints = 25
	ageStep   = 30 * time.Second
	// promotedAfter is how long a task waits until it goes before every task that has waited less than that, so that none
	// waits for ever.
	promotedAfter = 5 * time.Minute
)

// standing returns the priority that a task has in the queue. It never falls while the task waits.
func standing(priority int32, waited time.Duration) int32 {
	if waited >= promotedAfter {
		return maxPriority + 1
	}
	return min(maxPriority, priority+agePoints*int32(max(0, waited)/ageStep))
}

func priorityOf(t *v1alpha1.Task) int32 {
	if t.Spec.Priority == nil {
		return defaultPriority
	}
	return *t.Spec.Priority
}

// waitsSince returns since when the task waits for its next attempt. For a retry it is when the retry is due, and for
// another iteration the end of the one before: both have had their turn, and must not go before tasks that have not.
func waitsSince(t *v1alpha1.Task) time.Time {
	since := t.CreationTimestamp.Time
	if t.Status.Attempts == 0 {
		return since
	}
	if c := meta.FindStatusCondition(t.Status.Conditions, v1alpha1.ConditionJobCreated); c != nil && c.LastTransitionTime.After(since) {
		since = c.LastTransitionTime.Time
	}
	if due := t.Status.NextAttemptTime; due != nil && due.After(since) {
		since = due.Time
	}
	return since
}

// queue holds the tasks that wait for a slot. Of the tasks of one namespace and priority the one that has waited longest
// is always the next, so only the first task of each such list is compared when a slot becomes free. Ageing therefore
// needs no timer and no sorting.
type queue struct {
	places map[types.UID]waiter
	// lists holds the same tasks by namespace and priority, each list in the order of turns. None is empty.
	lists map[string]map[int32][]waiter
}

// waiter is a task in the queue, with the attempt that it wants a slot for.
type waiter struct {
	turn
	since             time.Time
	attempt, priority int32
}

func waiterOf(t *v1alpha1.Task) waiter {
	return waiter{turnOf(t), waitsSince(t), t.Status.Attempts + 1, priorityOf(t)}
}

// compareTurn orders tasks of one priority: by the time that they have waited, and then by their creation.
func (w waiter) compareTurn(o waiter) int { return cmp.Or(w.since.Compare(o.since), w.compare(o.turn)) }

func newQueue() queue {
	return queue{places: map[types.UID]waiter{}, lists: map[string]map[int32][]waiter{}}
}

func (q *queue) empty() bool { return len(q.places) == 0 }

// put adds a task, or moves it if its priority has changed.
func (q *queue) put(t *v1alpha1.Task) {
	w := waiterOf(t)
	if q.places[t.UID] == w {
		return
	}
	q.remove(t.UID)
	q.places[t.UID] = w
	lists := q.lists[t.Namespace]
	if lists == nil {
		lists = map[int32][]waiter{}
		q.lists[t.Namespace] = lists
	}
	at, _ := slices.BinarySearchFunc(lists[w.priority], w, waiter.compareTurn)
	lists[w.priority] = slices.Insert(lists[w.priority], at, w)
}

func (q *queue) has(uid types.UID) bool {
	_, ok := q.places[uid]
	return ok
}

func (q *queue) remove(uid types.UID) {
	w, ok := q.places[uid]
	if !ok {
		return
	}
	delete(q.places, uid)
	lists := q.lists[w.key.Namespace]
	list := lists[w.priority]
	at, _ := slices.BinarySearchFunc(list, w, waiter.compareTurn)
	switch {
	case len(list) > 1 && at == 0:
		lists[w.priority] = list[1:] // without moving the others
	case len(list) > 1:
		lists[w.priority] = slices.Delete(list, at, at+1)
	case len(lists) > 1:
		delete(lists, w.priority)
	default:
		delete(q.lists, w.key.Namespace)
	}
}

// first returns the task of a namespace of the highest standing, and of several the one that has waited longest. The namespace
// must have one.
func (q *queue) first(namespace string, now time.Time) (first waiter) {
	found := false
	for _, list := range q.lists[namespace] {
		if !found || list[0].before(first, now) {
			first, found = list[0], true
		}
	}
	return first
}

func (w waiter) before(o waiter, now time.Time) bool {
	a, b := standing(w.priority, now.Sub(w.since)), standing(o.priority, now.Sub(o.since))
	return a > b || a == b && w.compareTurn(o) < 0
}
