// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package task

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/platform-ai/platform/pkg/agentprogram"
	"github.com/platform-ai/platform/pkg/apis/core/v1alpha1"
)

const fullPool = v1alpha1.ReasonRuntimePoolFull

// coders is a cache of tasks of a pool, and the ledger that follows it.
type coders struct {
	*shelf
	pools *Pools
	key   types.NamespacedName
	image string
	notes []string
	took  pooled
}

func newCoders(t *testing.T, sessions, prompts int) *coders {
	t.Helper()
	c := &coders{shelf: newShelf(t, 0, 0), image: imageA}
	c.pools = NewPools(func() time.Time { return c.now })
	c.pools.shows = c.shows
	c.pools.wakeBy(func(k types.NamespacedName) { c.woken = append(c.woken, k.Name) })
	c.took = pooled{
		places: c.pools, options: agentprogram.PoolOptions{MaxResidentSessions: sessions, MaxRunningPrompts: prompts},
		image: func(v1alpha1.AgentRuntimeType) (string, error) { return c.image, nil },
		existing: func(_ context.Context, p *v1alpha1.RuntimePool) (*v1alpha1.RuntimePool, error) {
			p.UID = types.UID("uid of " + p.Name)
			c.key = types.NamespacedName{Namespace: p.Namespace, Name: p.Name}
			return p, nil
		},
		note: func(_ context.Context, t *v1alpha1.Task, reason, message string) {
			c.notes = append(c.notes, t.Name+": "+reason+": "+message)
		},
	}
	c.pools.begin()
	return c
}

const (
	imageA = "localhost/codex@sha256:aaaa"
	imageB = "localhost/codex@sha256:bbbb"
)

// want asks for a place as the step admit does, and returns the task as it is stored then.
func (c *coders) want(k *v1alpha1.Task, want string) *v1alpha1.Task {
	c.t.Helper()
	n := k.DeepCopy()
	err := c.took.take(c.t.Context(), n, v1alpha1.RuntimeCodex)
	w, _ := errors.AsType[queued](err)
	if w.reason != want || w.After != 0 || want == "" && err != nil {
		c.t.Errorf("%s: %v, want %q", k.Name, err, want)
	}
	return c.show(n, func(s *v1alpha1.TaskStatus) {
		if want != "" {
			waitsFor(n, w.reason, w.Reason)
			s.Conditions, s.Message = n.Status.Conditions, n.Status.Message
			return
		}
		runs1(s)
		meta.RemoveStatusCondition(&s.Conditions, v1alpha1.ConditionWaitingToStart)
	})
}

// show stores a change of a task, which the cache then shows.
func (c *coders) show(k *v1alpha1.Task, change func(*v1alpha1.TaskStatus)) *v1alpha1.Task {
	c.t.Helper()
	k = c.next(k, change)
	execution{now: func() time.Time { return c.now }}.follow(k)
	c.pools.observe(k)
	return k
}

func (c *coders) uses(want string) {
	c.t.Helper()
	u, known := c.pools.Use(c.key)
	if got := fmt.Sprintf("%d/%d/%d/%d", u.Resident, u.Running, u.Queued, u.Reserved); got != want || !known || int(u.Reserved) != len(u.Reservations) {
		c.t.Errorf("resident/running/queued/reserved: %s, want %s", got, want)
	}
}

func hasJob(s *v1alpha1.TaskStatus) {
	meta.SetStatusCondition(&s.Conditions, metav1.Condition{Type: v1alpha1.ConditionJobCreated, Status: metav1.ConditionTrue, Reason: v1alpha1.ReasonJobCreated})
}

func asks(s *v1alpha1.TaskStatus) {
	setCondition(s, 1, v1alpha1.ConditionWaitingForApproval, metav1.ConditionTrue, v1alpha1.ReasonApprovalPending, "")
}

func answered(s *v1alpha1.TaskStatus) {
	setCondition(s, 1, v1alpha1.ConditionWaitingForApproval, metav1.ConditionFalse, v1alpha1.ReasonApprovalDecided, "")
}

func finalizes(s *v1alpha1.TaskStatus) { s.Phase = v1alpha1.TaskFinalizing }

// TestPoolPlaces: a place is held until a task is over, and a prompt while its worker works. Both limits hold, and what is free goes on at
// once. A parked task gives its prompt back, and has it again when it goes on.
func TestPoolPlaces(t *testing.T) {
	c := newCoders(t, 3, 2)
	var k []*v1alpha1.Task
	for i := range 6 {
		k = append(k, c.pending("n", fmt.Sprint(i)))
	}
	k[0], k[1] = c.want(k[0], ""), c.want(k[1], "")
	for i := 2; i < 6; i++ {
		k[i] = c.want(k[i], fullPool)
	}
	c.uses("2/2/4/2")
	k[0], k[1] = c.show(k[0], hasJob), c.show(k[1], hasJob)
	c.uses("2/2/4/0")
	c.wantWoken()

	k[0] = c.show(k[0], asks) // parked: it holds its session and no prompt
	c.wantWoken("2")
	k[2] = c.show(c.want(k[2], ""), hasJob)
	c.uses("3/2/3/0")
	k[1] = c.show(k[1], finalizes) // no prompt, but a session, of which there are only three
	c.uses("3/1/3/0")
	c.wantWoken()
	k[0] = c.show(k[0], answered)
	c.uses("3/2/3/0")
	k[1] = c.show(k[1], ends)
	c.uses("2/2/3/0")
	c.wantWoken() // there is a session, and no prompt
	k[2] = c.show(k[2], ends)
	c.wantWoken("3")
	c.show(k[2], ends) // told again
	c.wantWoken()
	k[3] = c.want(k[3], "")
	k[3] = c.show(k[3], retried) // between two attempts it holds nothing
	c.wantWoken("4")
	c.uses("1/1/3/0")
	c.pools.forget(k[4]) // deleted
	c.wantWoken("5")
	c.uses("1/1/2/0")
	for _, i := range []int{0, 3, 5} {
		c.show(k[i], ends)
	}
	c.uses("0/0/0/0")
	if u, _ := c.pools.Use(c.key); u.Tasks != 0 || !c.pools.Retire(c.key) {
		t.Errorf("not empty: %+v", u)
	}
}

// TestPoolAfterRestart: the ledger that a new process makes from the tasks is the one that there was, and gives nothing away before it knows
// all of them.
func TestPoolAfterRestart(t *testing.T) {
	c := newCoders(t, 3, 2)
	var all []*v1alpha1.Task
	for i := range 5 {
		all = append(all, c.pending("n", fmt.Sprint(i)))
	}
	all[0], all[1] = c.want(all[0], ""), c.show(c.want(all[1], ""), hasJob)
	for i := 2; i < 5; i++ {
		all[i] = c.want(all[i], fullPool)
	}
	before, _ := c.pools.Use(c.key)

	again := newCoders(t, 3, 2)
	again.shelf.tasks, again.key, again.pools.begun = c.tasks, c.key, false
	again.pools.Admit(c.key, agentprogram.PoolLimits{MaxResidentSessions: 3, MaxRunningPrompts: 2}, true)
	for _, k := range slices.Backward(all) { // those that wait first
		again.pools.remember(k)
	}
	if _, known := again.pools.Use(c.key); known || again.pools.Retire(c.key) {
		t.Error("it decides before it knows all tasks")
	}
	again.pools.begin()
	again.wantWoken()
	after, _ := again.pools.Use(c.key)
	if d := cmp.Diff(before.RuntimePoolUse, after.RuntimePoolUse); d != "" || after.Reserved != 1 || after.Reservations[0].ExpiresAt == nil {
		t.Errorf("after a restart: %s", d)
	}
	again.want(all[3], fullPool)
	again.show(all[1], ends)
	again.wantWoken("2")
}

// TestPoolOrder: of the tasks that wait the first is that of the highest effective priority: 25 more for each 30 s of waiting, up to 1000,
// and after five minutes it goes before all. Of equal ones it is the one that has waited longest, and then the one that was created first.
func TestPoolOrder(t *testing.T) {
	c := newCoders(t, 1, 1)
	first := c.want(c.pending("n", "first"), "")
	at := func(after time.Duration, priority int32, name string) {
		c.now = time.Unix(1e9, 0).Add(after)
		c.want(c.of(priority, "n", name), fullPool)
	}
	at(0, 0, "aged")                        // 0 + 10*25, and promoted at 5:00
	at(60*time.Second, 900, "older-900")    // 900 + 100 = 1000
	at(61*time.Second, 900, "younger-900")  // 900 + 100 = 1000, queued later
	at(180*time.Second, 980, "capped")      // 980 + 25 = 1000 after 30 s, queued later still
	at(210*time.Second, 1000, "at-the-top") // 1000
	at(239*time.Second, 500, "z-twin")      // 500, and created before
	at(239*time.Second, 500, "a-twin")      // its twin
	run := first
	next := func(name string) {
		c.woken = nil
		c.show(run, ends)
		c.wantWoken(name)
		run = c.want(c.tasks[types.UID("n/"+name)], "")
	}
	c.now = time.Unix(1e9, 0).Add(299 * time.Second)
	next("older-900")
	next("younger-900")
	next("capped")
	c.now = c.now.Add(time.Second)
	next("aged")
	next("at-the-top")
	next("z-twin")
	next("a-twin")
}

// TestPoolRebind: when the program of the agent is another one, tasks that wait go to another pool, and those that run stay.
func TestPoolRebind(t *testing.T) {
	c := newCoders(t, 1, 1)
	runs := c.show(c.want(c.pending("n", "runs"), ""), hasJob)
	waits := c.want(c.pending("n", "waits"), fullPool)
	also := c.want(c.pending("n", "also"), fullPool)
	old := c.key
	c.image = imageB
	c.pools.Admit(old, agentprogram.PoolLimits{MaxResidentSessions: 1, MaxRunningPrompts: 1}, false)
	slices.Sort(c.woken)
	c.wantWoken("also", "waits")
	waits = c.want(waits, "")
	if c.key == old || waits.Status.Execution.RuntimePoolName != c.key.Name || waits.Status.Execution.RuntimePoolUID != types.UID("uid of "+c.key.Name) {
		t.Errorf("still in %+v", waits.Status.Execution)
	}
	if want := fmt.Sprintf("waits: ACPRuntimePoolRebound: waits in the pool %s and no longer in %s, because the program of codex was changed", c.key.Name, old.Name); !slices.Equal(c.notes, []string{want}) {
		t.Errorf("told %v", c.notes)
	}
	also = c.want(also, fullPool)
	c.uses("1/1/1/1")
	if c.key, old = old, c.key; runs.Status.Execution.RuntimePoolName != c.key.Name {
		t.Error("one that runs went to another pool")
	}
	c.uses("1/1/0/0")
	if c.pools.Retire(c.key) {
		t.Error("retired with a task in it")
	}
	c.show(runs, ends)
	if !c.pools.Retire(c.key) {
		t.Error("not retired")
	}
	c.wantWoken()
	c.show(waits, ends)
	c.wantWoken(also.Name)
}

// TestPoolRetired: a task that comes while an idle pool is deleted waits for its end, and then has it made again.
func TestPoolRetired(t *testing.T) {
	c := newCoders(t, 1, 1)
	c.show(c.want(c.pending("n", "one"), ""), ends)
	if !c.pools.Retire(c.key) {
		t.Fatal("not retired")
	}
	c.pools.Admit(c.key, agentprogram.DefaultPoolLimits(), true) // by one who does not know it yet
	two := c.want(c.pending("n", "two"), fullPool)
	if !strings.Contains(two.Status.Message, "is being deleted") {
		t.Error(two.Status.Message)
	}
	c.wantWoken()
	c.pools.Gone(c.key)
	c.woken = slices.Compact(c.woken)
	c.wantWoken("two")
	c.want(two, "")
}

// TestPoolCapacity: what an administrator sets is obeyed at once, and what is in use is not taken away.
func TestPoolCapacity(t *testing.T) {
	c := newCoders(t, 1, 1)
	a := c.want(c.pending("n", "a"), "")
	b, d := c.want(c.pending("n", "b"), fullPool), c.want(c.pending("n", "d"), fullPool)
	c.pools.Admit(c.key, agentprogram.PoolLimits{MaxResidentSessions: 2, MaxRunningPrompts: 2}, true)
	c.wantWoken("b")
	b = c.want(b, "")
	c.pools.Admit(c.key, agentprogram.PoolLimits{MaxResidentSessions: 1, MaxRunningPrompts: 1}, true)
	c.show(a, ends)
	c.wantWoken()
	c.uses("1/1/1/1")
	c.show(b, ends)
	c.wantWoken(d.Name)
}

// TestPoolQuota: while a run of the pool waits for room in the quota of the namespace, no other one is admitted to wait there, too.
func TestPoolQuota(t *testing.T) {
	c := newCoders(t, 4, 4)
	a := c.show(c.want(c.pending("n", "a"), ""), hasJob)
	waits := a.DeepCopy()
	waitsFor(waits, v1alpha1.ReasonQuotaExceeded, "exceeded quota: runs")
	a = c.show(a, func(s *v1alpha1.TaskStatus) { *s = waits.Status })
	if e := a.Status.Execution; e.State != v1alpha1.ExecutionSessionStarting || e.Reason != v1alpha1.ReasonQuotaExceeded {
		t.Errorf("execution %+v", e)
	}
	b := c.want(c.pending("n", "b"), fullPool)
	if !strings.Contains(b.Status.Message, "exceeded quota: runs") {
		t.Error(b.Status.Message)
	}
	c.wantWoken()
	c.show(a, func(s *v1alpha1.TaskStatus) {
		meta.RemoveStatusCondition(&s.Conditions, v1alpha1.ConditionWaitingToStart)
	})
	c.wantWoken("b")
}

// TestPoolTree: a task that waits for tasks which it delegated to the same pool gives its place back meanwhile, so that a pool of one place
// cannot stand still.
func TestPoolTree(t *testing.T) {
	c := newCoders(t, 1, 1)
	parent := c.show(c.want(c.pending("n", "parent"), ""), hasJob)
	child := c.pending("n", "child")
	child.Status.Delegation = &v1alpha1.TaskDelegation{Parent: "parent", ParentUID: parent.UID, Root: "parent"}
	c.show(c.want(child, ""), ends)
	c.want(c.pending("n", "next"), fullPool) // the parent has its place again
	c.woken = nil
	c.show(parent, ends)
	c.wantWoken("next")
}

// TestNoPool: a task without a coding agent asks for no place.
func TestNoPool(t *testing.T) {
	c := newCoders(t, 1, 1)
	c.want(c.pending("n", "coder"), "")
	k := c.pending("n", "talker")
	k.Spec.Type = v1alpha1.TaskTypeAI
	if err := c.took.take(t.Context(), k, ""); err != nil || k.Status.Execution != nil {
		t.Errorf("%v, %+v", err, k.Status.Execution)
	}
	c.uses("1/1/0/1")
}

// TestPoolsAtRandom compares the ledger with what the tasks say, through 20,000 changes and restarts.
func TestPoolsAtRandom(t *testing.T) {
	const sessions, prompts = 5, 2
	c := newCoders(t, sessions, prompts)
	random := rand.New(rand.NewPCG(1, 2))
	live := map[types.UID]*v1alpha1.Task{}
	for n := range 20_000 {
		c.now = c.now.Add(time.Second)
		if len(live) < 12 {
			k := c.of(int32(random.IntN(1000)), "n", fmt.Sprint(n))
			live[k.UID] = k
		}
		uids := slices.Sorted(maps.Keys(live))
		k := live[uids[random.IntN(len(uids))]]
		switch {
		case random.IntN(200) == 0: // a new process
			again := newCoders(t, sessions, prompts)
			again.shelf.tasks, again.now, again.pools.begun = c.tasks, c.now, false
			for _, uid := range uids {
				again.pools.remember(live[uid])
			}
			again.pools.begin()
			c = again
		case k.Status.Phase == v1alpha1.TaskPending:
			asked := k.DeepCopy()
			err := c.took.take(t.Context(), asked, v1alpha1.RuntimeCodex)
			k = c.show(asked, func(s *v1alpha1.TaskStatus) {
				if err == nil {
					runs1(s)
					hasJob(s)
				}
			})
		case random.IntN(4) == 0 && k.Status.Phase == v1alpha1.TaskRunning:
			k = c.show(k, finalizes)
		default:
			k = c.show(k, ends)
		}
		if live[k.UID] = k; k.Status.Phase.Terminal() {
			delete(live, k.UID)
			delete(c.tasks, k.UID)
		}
		resident, working := 0, 0
		for _, k := range live {
			if holdsPlace(k) {
				resident++
			}
			if works(k) {
				working++
			}
		}
		u, _ := c.pools.Use(c.key)
		if resident > sessions || working > prompts || c.key.Name != "" && (int(u.Resident) != resident || int(u.Running) != working) {
			t.Fatalf("change %d: %d sessions, %d prompts; it says %+v", n, resident, working, u.RuntimePoolUse)
		}
	}
}
