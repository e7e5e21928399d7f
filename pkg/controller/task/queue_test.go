// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package task

import (
	"cmp"
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/platform-ai/platform/pkg/apis/core/v1alpha1"
)

// of returns a new task of a priority.
func (f *shelf) of(priority int32, namespace, name string) *v1alpha1.Task {
	k := f.pending(namespace, name)
	k.Spec.Priority = &priority
	return k
}

// free ends the task that has the only slot, and returns the name of the one that has it then.
func (f *shelf) free() string {
	f.t.Helper()
	f.woken = nil
	for uid := range f.held {
		f.observe(f.next(f.next(f.tasks[uid], runs1), ends))
	}
	if len(f.woken) != 1 {
		f.t.Fatalf("woken: %v", f.woken)
	}
	k := f.tasks[types.UID(f.woken[0])]
	f.ask(k, "")
	return k.Name
}

func TestStanding(t *testing.T) {
	for _, tc := range []struct {
		priority int32
		waited   time.Duration
		want     int32
	}{
		{500, 0, 500},
		{500, -time.Hour, 500}, // the clock was set back
		{500, 29 * time.Second, 500},
		{500, 30 * time.Second, 525},
		{0, 299 * time.Second, 225},
		{990, time.Minute, 1000},
		{0, 5 * time.Minute, 1001},
		{1000, 5 * time.Minute, 1001},
		{0, 1000 * time.Hour, 1001},
	} {
		if got := standing(tc.priority, tc.waited); got != tc.want {
			t.Errorf("priority %d after %s: %d, want %d", tc.priority, tc.waited, got, tc.want)
		}
	}
}

// Higher priority goes first within a namespace, whatever the order of creation and of asking.
func TestQueueByPriority(t *testing.T) {
	f := newShelf(t, 1, 0)
	f.ask(f.pending("n", "first"), "")
	for _, k := range []*v1alpha1.Task{
		f.of(0, "n", "g"), f.of(500, "n", "d"), f.pending("n", "e"), f.of(1000, "n", "a"), f.of(999, "n", "c"), f.of(1000, "n", "b"), f.of(499, "n", "f"),
	} {
		f.ask(k, full)
	}
	for _, want := range []string{"a", "b", "c", "d", "e", "f", "g"} {
		if got := f.free(); got != want {
			t.Errorf("%s goes, want %s", got, want)
		}
	}
}

// A task that waits gains on those that come later, and in the end goes before all of them.
func TestQueueAges(t *testing.T) {
	f := newShelf(t, 1, 0)
	f.ask(f.pending("n", "first"), "")
	f.ask(f.of(490, "n", "old"), full)
	f.ask(f.of(0, "n", "oldest of all"), full)
	f.now = f.now.Add(30 * time.Second)
	f.ask(f.of(500, "n", "new"), full)
	f.ask(f.of(515, "n", "equal"), full)
	if got := []string{f.free(), f.free(), f.free()}; !slices.Equal(got, []string{"old", "equal", "new"}) {
		t.Errorf("order %v", got)
	}
	f.now = f.now.Add(270 * time.Second)
	f.ask(f.of(1000, "n", "urgent"), full)
	if got := []string{f.free(), f.free()}; !slices.Equal(got, []string{"oldest of all", "urgent"}) {
		t.Errorf("order %v", got)
	}
}

// A retry or another iteration of an old task has waited since it is due, and not since the task was created. A restart
// keeps that.
func TestQueueAgesByWaiting(t *testing.T) {
	f := newShelf(t, 1, 0)
	first := f.pending("n", "first")
	first = f.next(first, runs1)
	f.remember(first)
	retried, iterates, waited := f.of(100, "n", "retried"), f.of(100, "n", "iterates"), f.of(100, "n", "waited")
	f.now = f.now.Add(time.Hour)
	retried = f.next(retried, retryDue(f.now.Add(-time.Minute)))
	iterates = f.next(iterates, func(s *v1alpha1.TaskStatus) {
		s.Attempts = 1
		s.Conditions = []metav1.Condition{{Type: v1alpha1.ConditionJobCreated, Status: "False", LastTransitionTime: metav1.NewTime(f.now)}}
	})
	for _, k := range []*v1alpha1.Task{iterates, retried, waited, f.of(1000, "n", "urgent"), f.of(140, "n", "fresh"), f.of(160, "n", "fresher")} {
		f.recall(k, true)
	}
	f.observe(f.next(first, ends))
	f.wantWoken("n/waited")
	f.ask(waited, "")
	got := []string{"waited", f.free(), f.free(), f.free(), f.free(), f.free()}
	if !slices.Equal(got, []string{"waited", "urgent", "fresher", "retried", "fresh", "iterates"}) {
		t.Errorf("order %v", got)
	}
}

// retryDue makes the status that of a task whose first attempt has failed and whose retry is due then.
func retryDue(due time.Time) func(*v1alpha1.TaskStatus) {
	return func(s *v1alpha1.TaskStatus) {
		s.Attempts, s.NextAttemptTime = 1, &metav1.Time{Time: due}
	}
}

// A change of the field takes effect while the task waits, and a restart keeps the order.
func TestQueueFollowsTheField(t *testing.T) {
	f := newShelf(t, 1, 0)
	first, a, b := f.pending("n", "first"), f.of(1, "n", "a"), f.of(2, "n", "b")
	first = f.next(first, runs1)
	waiting := func(s *v1alpha1.TaskStatus) {
		setCondition(s, 1, v1alpha1.ConditionWaitingToStart, "True", v1alpha1.ReasonTaskLimitReached, "")
	}
	a, b = f.next(a, waiting), f.next(b, waiting)
	for _, k := range []*v1alpha1.Task{a, b, first} {
		f.remember(k)
	}
	a = f.next(a, waiting)
	a.Spec.Priority = new(int32(3))
	f.observe(a)
	f.observe(f.next(first, ends))
	f.wantWoken("n/a")
	f.ask(a, "")
	if got := f.free(); got != "b" {
		t.Errorf("%s goes, want b", got)
	}
	f.forget(b)
	if !f.empty() || len(f.waiting.lists) != 0 {
		t.Errorf("%v is left", f.waiting)
	}
}

// The queue gives the same order of the tasks of a namespace as sorting them, at every moment.
func TestQueueAgainstSorting(t *testing.T) {
	rnd := rand.New(rand.NewPCG(1, 2))
	f := newShelf(t, 0, 0)
	q := newQueue()
	var model []waiter
	for i := range 3000 {
		f.now = f.now.Add(time.Duration(rnd.IntN(2000)) * time.Millisecond)
		switch {
		case len(model) == 0 || rnd.IntN(5) < 3:
			k := f.of(int32(rnd.IntN(6)*50), fmt.Sprint("n", rnd.IntN(3)), fmt.Sprint(i))
			if rnd.IntN(4) == 0 { // it had its turn before
				k.CreationTimestamp.Time = f.now.Add(-time.Duration(rnd.IntN(1000)) * time.Second)
				retryDue(f.now.Add(time.Duration(rnd.IntN(60)-30) * time.Second))(&k.Status)
			}
			q.put(k)
			model = append(model, waiterOf(k))
		case rnd.IntN(4) == 0: // one is gone
			at := rnd.IntN(len(model))
			q.remove(model[at].uid)
			model = slices.Delete(model, at, at+1)
		default:
			of := fmt.Sprint("n", rnd.IntN(3))
			slices.SortFunc(model, func(a, b waiter) int {
				return cmp.Or(
					cmp.Compare(standing(b.priority, f.now.Sub(b.since)), standing(a.priority, f.now.Sub(a.since))),
					a.since.Compare(b.since), cmp.Compare(a.revision, b.revision))
			})
			at := slices.IndexFunc(model, func(w waiter) bool { return w.key.Namespace == of })
			if (at >= 0) != (q.lists[of] != nil) {
				t.Fatalf("the queue has tasks of %s: %v, want number %d of %v", of, q.lists[of], at, model)
			}
			if at < 0 {
				continue
			}
			got := q.first(of, f.now)
			if got != model[at] {
				t.Fatalf("next is %v, want number %d of %v", got, at, model)
			}
			q.remove(got.uid)
			model = slices.Delete(model, at, at+1)
		}
	}
	if len(q.places) != len(model) {
		t.Errorf("%d in the queue, want %d", len(q.places), len(model))
	}
}

// A task that its parent waits for goes before all tasks that have not begun, but only one for each parent.
func TestQueueOfATree(t *testing.T) {
	f := newShelf(t, 1, 0)
	parent := f.of(0, "n", "parent")
	f.ask(parent, "")
	parent = f.next(parent, runs1)
	f.observe(parent)
	for i := range 3 {
		f.ask(f.of(1000, "n", fmt.Sprint("stranger", i)), full)
	}
	child := func(name string) *v1alpha1.Task {
		k := f.of(0, "n", name)
		k.Status.Delegation = &v1alpha1.TaskDelegation{Parent: parent.Name, ParentUID: parent.UID}
		f.observe(k)
		return k
	}
	c1 := child("child1")
	f.wantWoken("n/stranger0") // the slot that the parent gave away
	f.ask(c1, full)
	f.ask(child("child2"), full)
	if got := []string{f.free(), f.free()}; !slices.Equal(got, []string{"child1", "child2"}) {
		t.Errorf("order %v", got)
	}
	// The parent has the slot again when its last child has ended.
	f.woken = nil
	f.observe(f.next(f.tasks["n/child2"], ends))
	f.wantWoken()
	f.observe(f.next(parent, ends))
	f.wantWoken("n/stranger1")
}

// A detached child that runs still counts among those that its parent may have at once, also after a restart; one that waits
// does not.
func TestDetachedChildrenCount(t *testing.T) {
	f := newShelf(t, 0, 0)
	shows := func(context.Context, *v1alpha1.Task) (bool, error) { return true, nil }
	kin := newSiblings(func() time.Time { return f.now }, shows)
	child := func(name string) *v1alpha1.Task {
		k := f.of(1, "n", name)
		k.Status.Delegation = &v1alpha1.TaskDelegation{Parent: "p", ParentUID: "p"}
		return k
	}
	detach := func(s *v1alpha1.TaskStatus) { s.Delegation.Detached = true }
	first, second, waits := child("first"), child("second"), child("waits")
	if err := kin.take(t.Context(), first, 1); err != nil {
		t.Fatal(err)
	}
	if err := kin.take(t.Context(), waits, 1); err == nil {
		t.Error("two children run")
	}
	first = f.next(f.next(first, runs1), detach)
	kin.observe(first)
	kin.observe(f.next(waits, detach))
	restarted := newSiblings(func() time.Time { return f.now }, shows)
	restarted.remember(first)
	for _, s := range []*siblings{kin, restarted} {
		if err := s.take(t.Context(), second, 1); err == nil {
			t.Error("a child starts beside a detached one")
		}
		s.observe(f.next(first, ends))
		if err := s.take(t.Context(), second, 1); err != nil {
			t.Error(err)
		}
	}
}

// Until the limit of a parent is known after a restart, none of the children that wait starts.
func TestSiblingsAfterARestart(t *testing.T) {
	f := newShelf(t, 0, 0)
	kin := newSiblings(func() time.Time { return f.now }, func(context.Context, *v1alpha1.Task) (bool, error) { return true, nil })
	var woken []string
	kin.wakeBy(func(k types.NamespacedName) { woken = append(woken, k.Name) })
	child := func(priority int32, name string, change func(*v1alpha1.TaskStatus)) *v1alpha1.Task {
		k := f.of(priority, "n", name)
		k.Status.Delegation = &v1alpha1.TaskDelegation{Parent: "p", ParentUID: "p"}
		change(&k.Status)
		kin.remember(k)
		return k
	}
	waits := func(s *v1alpha1.TaskStatus) {
		setCondition(s, 1, v1alpha1.ConditionWaitingToStart, "True", v1alpha1.ReasonChildLimitReached, "")
	}
	runs := child(1, "runs", runs1)
	low, high := child(1, "low", waits), child(2, "high", waits)
	kin.observe(runs)
	if err := kin.take(t.Context(), low, 1); err == nil {
		t.Error("a child starts above the limit")
	}
	kin.observe(f.next(runs, ends))
	if !slices.Equal(woken, []string{"high"}) {
		t.Errorf("woken: %v", woken)
	}
	if err := kin.take(t.Context(), high, 1); err != nil {
		t.Error(err)
	}
}
