// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package task

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"

	"github.com/platform-ai/platform/pkg/apis/core/v1alpha1"
	"github.com/platform-ai/platform/pkg/fairshare"
	"github.com/platform-ai/platform/test/kit"
)

// shelf is a cache of tasks for a ledger. It shows what is put into it, and passes that to the
// ledger at once or later.
type shelf struct {
	*slots
	t     *testing.T
	now   time.Time
	mu    sync.Mutex
	tasks map[types.UID]*v1alpha1.Task
	woken []string
}

func newShelf(t *testing.T, all, namespace int) *shelf {
	t.Helper()
	return newSharedShelf(t, all, namespace, fairshare.Shares{})
}

// newSharedShelf makes one whose slots are divided by weights, or reserved.
func newSharedShelf(t *testing.T, all, namespace int, shares fairshare.Shares) *shelf {
	t.Helper()
	f := &shelf{t: t, now: time.Unix(1e9, 0), tasks: map[types.UID]*v1alpha1.Task{}}
	f.slots = newSlots(all, namespace, shares, func() time.Time { return f.now }, func(_ context.Context, k *v1alpha1.Task) (bool, error) {
		f.mu.Lock()
		defer f.mu.Unlock()
		now, ok := f.tasks[k.UID]
		return ok && now.ResourceVersion == k.ResourceVersion, nil
	})
	f.wakeBy(func(k types.NamespacedName) { f.woken = append(f.woken, k.String()) })
	return f
}

// pending returns a new task. The order of calls is the order of turns.
func (f *shelf) pending(namespace, name string) *v1alpha1.Task {
	k := &v1alpha1.Task{ObjectMeta: in(namespace, name)}
	k.UID, k.ResourceVersion = types.UID(namespace+"/"+name), "1"
	k.CreationTimestamp.Time = f.now
	k.Status.Phase, k.Status.CreationRevision = v1alpha1.TaskPending, int64(len(f.tasks)+1)
	f.put(k)
	return k
}

func (f *shelf) put(k *v1alpha1.Task) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.tasks[k.UID] = k
}

// next returns a new version of a task, which the cache then shows.
func (f *shelf) next(k *v1alpha1.Task, change func(*v1alpha1.TaskStatus)) *v1alpha1.Task {
	n, err := strconv.Atoi(k.ResourceVersion)
	if err != nil {
		f.t.Fatal(err)
	}
	k = k.DeepCopy()
	k.ResourceVersion = strconv.Itoa(n + 1)
	change(&k.Status)
	f.put(k)
	return k
}

func (f *shelf) ask(k *v1alpha1.Task, want string) {
	f.t.Helper()
	err := f.take(f.t.Context(), k)
	got := ""
	switch w, ok := errors.AsType[queued](err); {
	case ok:
		if got = w.reason; w.After != 0 {
			f.t.Errorf("%s asks again by itself, after %s", k.Name, w.After)
		}
	case apierrors.IsConflict(err):
		got = "conflict"
	case err != nil:
		got = err.Error()
	}
	if got != want {
		f.t.Errorf("%s/%s: %v, want %q", k.Namespace, k.Name, err, want)
	}
}

func (f *shelf) wantWoken(want ...string) {
	f.t.Helper()
	if !slices.Equal(f.woken, want) {
		f.t.Errorf("woken: %v, want %v", f.woken, want)
	}
	f.woken = nil
}

func runs1(s *v1alpha1.TaskStatus) { s.Phase, s.Attempts = v1alpha1.TaskRunning, s.Attempts+1 }
func ends(s *v1alpha1.TaskStatus)  { s.Phase = v1alpha1.TaskSucceeded }
func retried(s *v1alpha1.TaskStatus) {
	s.Phase = v1alpha1.TaskPending
}

const (
	crowded = v1alpha1.ReasonNamespaceTaskLimitReached
	full    = v1alpha1.ReasonTaskLimitReached
)

func TestSlots(t *testing.T) {
	f := newShelf(t, 3, 2)
	a1, a2, a3 := f.pending("a", "1"), f.pending("a", "2"), f.pending("a", "3")
	b1, b2, c1 := f.pending("b", "1"), f.pending("b", "2"), f.pending("c", "1")
	f.ask(a1, "")
	f.ask(a1, "") // again, after a conflict
	f.ask(a2, "")
	f.ask(a3, crowded) // the cache shows none of them at work yet
	f.ask(b1, "")
	f.ask(c1, full)
	f.ask(b2, full)
	a1 = f.next(a1, runs1)
	f.observe(a1)
	f.wantWoken()
	// One slot goes to the namespace that has none, and only once, however often the end is reported.
	a1 = f.next(a1, ends)
	f.observe(a1)
	f.observe(a1)
	f.wantWoken("c/1")
	f.ask(b2, full) // the slot belongs to c/1, which has not asked again yet
	f.ask(c1, "")
	f.forget(a2)
	f.wantWoken("a/3") // a has none now
	f.forget(a3)       // gone before it came
	f.wantWoken("b/2")
	f.ask(b2, "")

	none := newShelf(t, 0, 0)
	for i := range 100 {
		none.ask(none.pending("a", fmt.Sprint(i)), "")
	}
}

// The order of tasks of one priority is that of creation, not of asking.
func TestSlotsInOrder(t *testing.T) {
	f := newShelf(t, 1, 0)
	first := f.pending("n", "first")
	f.ask(first, "")
	var tasks []*v1alpha1.Task
	for _, name := range []string{"z", "y", "x", "w"} {
		tasks = append(tasks, f.pending("n", name))
	}
	for _, k := range slices.Backward(tasks) {
		f.ask(k, full)
	}
	f.observe(f.next(first, ends)) // without ever having been seen at work
	for i, k := range tasks {
		f.wantWoken("n/" + k.Name)
		if i+1 < len(tasks) {
			f.ask(tasks[i+1], full)
		}
		f.ask(k, "")
		f.observe(f.next(f.next(k, runs1), ends))
	}
	f.wantWoken()
}

// A slot is given back exactly when its use ends.
func TestSlotsComeBack(t *testing.T) {
	parked := func(s *v1alpha1.TaskStatus) {
		setCondition(s, 1, v1alpha1.ConditionWaitingForApproval, "True", v1alpha1.ReasonApprovalPending, "")
	}
	decided := func(s *v1alpha1.TaskStatus) {
		setCondition(s, 1, v1alpha1.ConditionWaitingForApproval, "False", v1alpha1.ReasonApprovalDecided, "")
	}
	f := newShelf(t, 1, 0)
	k, w := f.pending("n", "k"), f.pending("n", "w")
	f.ask(k, "")
	f.ask(w, full)
	f.observe(k) // as it was before
	f.wantWoken()
	k = f.next(k, runs1)
	f.observe(k)
	f.wantWoken()
	k = f.next(k, parked)
	f.observe(k)
	f.wantWoken("n/w")
	f.ask(w, "")
	k = f.next(k, decided)
	f.observe(k) // goes on: one more than the limit
	w = f.next(f.next(w, runs1), retried)
	f.observe(w)
	f.ask(w, full) // for the second attempt; k still runs
	k = f.next(k, retried)
	f.observe(k)
	f.wantWoken("n/w")
	f.ask(w, "")
	f.ask(k, full)

	// One that cannot run now lets the next one go first.
	f.observe(f.next(w, ends))
	f.wantWoken("n/k")
	x := f.pending("n", "x")
	f.ask(x, full)
	if err := f.leave(t.Context(), k); err != nil {
		t.Fatal(err)
	}
	f.wantWoken("n/x")
}

// The cache may not show yet what was written.
func TestSlotsWithALateCache(t *testing.T) {
	f := newShelf(t, 1, 0)
	k, w := f.pending("n", "k"), f.pending("n", "w")
	f.ask(k, "")
	f.ask(w, full)
	// Its attempt is written; a reconcile that does not see it finds that it cannot run.
	if err := f.leave(t.Context(), k); err != nil {
		t.Fatal(err)
	}
	f.wantWoken()
	// A failed write is recognised when another write has come before it.
	k = f.next(k, func(s *v1alpha1.TaskStatus) { s.Message = "somebody else" })
	if err := f.leave(t.Context(), k); err != nil {
		t.Fatal(err)
	}
	f.wantWoken("n/w")
	f.ask(w, "")
	// A reconcile began before its task ended, and decides after the ledger knows of the end.
	stale := w
	w = f.next(f.next(w, runs1), ends)
	f.observe(w)
	f.ask(stale, "conflict")
	f.ask(k, "")
	// The same, and the task is gone.
	stale = k
	f.mu.Lock()
	delete(f.tasks, k.UID)
	f.mu.Unlock()
	f.forget(k)
	f.ask(stale, "conflict")
	f.ask(f.pending("n", "z"), "")
	if len(f.held) != 1 || !f.waiting.empty() {
		t.Errorf("held %v, in line %v", f.held, f.waiting.places)
	}
}

// A controller that starts knows all tasks before it decides, whatever their order.
func TestSlotsAfterARestart(t *testing.T) {
	f := newShelf(t, 2, 0)
	var tasks []*v1alpha1.Task
	for i := range 6 {
		k := f.pending("n", fmt.Sprint(i))
		if i < 2 {
			k = f.next(k, runs1)
		} else {
			k = f.next(k, func(s *v1alpha1.TaskStatus) {
				setCondition(s, 1, v1alpha1.ConditionWaitingToStart, "True", v1alpha1.ReasonTaskLimitReached, "")
			})
		}
		tasks = append(tasks, k)
	}
	for _, k := range slices.Backward(tasks) {
		f.remember(k)
	}
	f.wantWoken()
	f.ask(tasks[4], full)
	f.observe(f.next(tasks[0], ends))
	f.wantWoken("n/2")
}

// Eight concurrent reconciles, as in the controller, and a cache that lags.
func TestSlotsAreNotOvertaken(t *testing.T) {
	const limit, tasks = 3, 200
	f := newShelf(t, limit, 0)
	work := make(chan *v1alpha1.Task, 10*tasks)
	f.wakeBy(func(k types.NamespacedName) {
		f.mu.Lock()
		defer f.mu.Unlock()
		work <- f.tasks[types.UID(k.String())]
	})
	var all []*v1alpha1.Task
	for i := range tasks {
		all = append(all, f.pending("n", fmt.Sprintf("%03d", i)))
	}
	var atWork, ended atomic.Int32
	over := make(chan struct{})
	for range 8 {
		go func() {
			for k := range work {
				if f.take(t.Context(), k) != nil {
					continue // it will be woken, or was before it came
				}
				if atWork.Add(1) > limit {
					t.Errorf("%s is one too many", k.Name)
				}
				run := f.next(k, runs1)
				f.observe(run)
				atWork.Add(-1)
				f.observe(f.next(run, ends))
				if ended.Add(1) == tasks {
					close(over)
				}
			}
		}()
	}
	for _, k := range all {
		work <- k
	}
	<-over
	close(work)
	if len(f.held) != 0 || f.used.Sum() != 0 || !f.waiting.empty() {
		t.Errorf("held %v, used %v, in line %v", f.held, f.used, f.waiting.places)
	}
}

// TestSlotsGoRoundNamespaces: a namespace that takes every slot gives them to others as its runs end, whatever the priorities,
// and with one slot namespaces take turns.
func TestSlotsGoRoundNamespaces(t *testing.T) {
	f := newShelf(t, 4, 0)
	var running []*v1alpha1.Task
	run := func(k *v1alpha1.Task) {
		k = f.next(k, runs1)
		f.observe(k)
		running = append(running, k)
	}
	for i := range 40 {
		k := f.of(1000, "greedy", fmt.Sprintf("%02d", i))
		if i < 4 {
			f.ask(k, "")
			run(k)
			continue
		}
		f.ask(k, full)
	}
	for _, name := range []string{"low", "lower"} {
		f.ask(f.of(0, "meek", name), full)
	}
	last := f.of(0, "last", "one")
	f.ask(last, full)
	if err := f.take(t.Context(), last); err == nil || !strings.Contains(err.Error(), "their slots go round the namespaces that wait") {
		t.Errorf("what people read meanwhile: %v", err)
	}
	f.woken = nil
	for range 6 {
		f.observe(f.next(running[0], ends))
		running = running[1:]
		run(f.tasks[types.UID(f.woken[len(f.woken)-1])])
	}
	f.wantWoken("meek/low", "last/one", "greedy/04", "meek/lower", "greedy/05", "greedy/06")

	single := newShelf(t, 1, 0)
	single.ask(single.pending("a", "first"), "")
	for i := range 3 {
		for _, namespace := range []string{"a", "b", "c"} {
			single.ask(single.pending(namespace, fmt.Sprint(namespace, i)), full)
		}
	}
	var got []string
	for range 9 {
		got = append(got, single.free())
	}
	if want := []string{"b0", "c0", "a0", "b1", "c1", "a1", "b2", "c2", "a2"}; !slices.Equal(got, want) {
		t.Errorf("turns of one slot: %v, want %v", got, want)
	}
}

// TestSharesOfSlots: slots are divided by weight, and reserved ones stay free for their namespace.
func TestSharesOfSlots(t *testing.T) {
	f := newSharedShelf(t, 8, 0, fairshare.Shares{Weights: map[string]int{"heavy": 3}})
	block := f.pending("x", "block")
	f.ask(block, "")
	for i := range 7 {
		f.ask(f.pending("x", fmt.Sprint(i)), "")
	}
	for i := range 20 {
		f.ask(f.pending("heavy", fmt.Sprintf("h%02d", i)), full)
		f.ask(f.pending("light", fmt.Sprintf("l%02d", i)), full)
	}
	for uid := range f.tasks {
		if f.tasks[uid].Namespace == "x" {
			f.observe(f.next(f.tasks[uid], ends))
		}
	}
	if heavy, light := f.used.Held("heavy"), f.used.Held("light"); heavy != 6 || light != 2 {
		t.Errorf("weights 3 and 1 got %d and %d of 8 slots", heavy, light)
	}

	f = newSharedShelf(t, 3, 0, fairshare.Shares{Reserved: map[string]int{"vip": 1}})
	a := f.pending("a", "1")
	f.ask(a, "")
	f.ask(f.pending("a", "2"), "")
	third := f.pending("a", "3")
	f.ask(third, full)
	if err := f.take(t.Context(), third); err == nil || !strings.Contains(err.Error(), "reserved for other namespaces") {
		t.Errorf("while a slot is reserved: %v", err)
	}
	f.ask(f.pending("vip", "1"), "")
	f.ask(f.pending("vip", "2"), full)
	f.woken = nil
	f.observe(f.next(a, ends))
	f.wantWoken("a/3") // both hold one, and vip has been served since
}

// TestSlotMetrics: the metrics show who holds slots and who waits.
func TestSlotMetrics(t *testing.T) {
	f := newSharedShelf(t, 2, 0, fairshare.Shares{Reserved: map[string]int{"vip": 1}})
	f.ask(f.pending("a", "1"), "")
	f.ask(f.pending("a", "2"), full)
	registry := prometheus.NewRegistry()
	for range 2 { // the controllers of a process may start again
		ctx, end := context.WithCancel(t.Context())
		if err := showSlots(ctx, registry, f.slots); err != nil {
			t.Fatal(err)
		}
		if err := testutil.GatherAndCompare(registry, strings.NewReader(`# HELP platform_task_slots_held Slots for runs that tasks of a namespace hold.
# TYPE platform_task_slots_held gauge
platform_task_slots_held{namespace="a"} 1
# HELP platform_task_slots_limit Slots of all namespaces together (--max-running-tasks); 0 is no limit.
# TYPE platform_task_slots_limit gauge
platform_task_slots_limit 2
# HELP platform_task_slots_reserved Slots that only tasks of a namespace can have (--reserved-tasks).
# TYPE platform_task_slots_reserved gauge
platform_task_slots_reserved{namespace="vip"} 1
# HELP platform_task_slots_waiting Tasks of a namespace that wait for a slot.
# TYPE platform_task_slots_waiting gauge
platform_task_slots_waiting{namespace="a"} 1
`)); err != nil {
			t.Error(err)
		}
		end()
		kit.Await(t, "the metrics to be removed", func() bool {
			families, err := registry.Gather()
			return err == nil && len(families) == 0
		})
	}
}
