// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package task

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/platform-ai/platform/pkg/agentprogram"
	"github.com/platform-ai/platform/pkg/apis/core/v1alpha1"
	"github.com/platform-ai/platform/pkg/controller/step"
	"github.com/platform-ai/platform/pkg/fairshare"
)

// Pools is the ledger of the places of coding agents in RuntimePools. It is derived from the tasks and stored nowhere else: a task
// that holds a place says so in its status.execution, which is written with the attempt before the attempt is started. After a restart
// the ledger is made from what the tasks say, so a place cannot be lost.
//
// A task holds a place from its reservation until its attempt is over and what it changed is delivered. It counts as a running prompt
// while its worker is at work, and not while it is parked or its changes are delivered. A free place goes at once to the next task in
// the pool's queue, by priority and age (see standing), and that task is woken. A task takes its place in the pool first, and a slot of
// the server after that, so nothing that holds a slot waits for a place.
type Pools struct {
	now   func() time.Time
	shows func(context.Context, *v1alpha1.Task) (bool, error)

	// mu guards what follows.
	mu    sync.Mutex
	rooms map[types.NamespacedName]*poolRoom
	// of is the pool in which each task has a place or waits for one.
	of   map[types.UID]types.NamespacedName
	wake func(types.NamespacedName)
	// begun is set when all tasks that existed at the start are noted. Nothing is decided before that.
	begun bool
	// changed is called with the pool whose use has changed. It must not block.
	changed func(types.NamespacedName)
}

var _ ledger = (*Pools)(nil)

// poolRoom is the ledger of one pool.
type poolRoom struct {
	*slots
	limits agentprogram.PoolLimits
	// open is set while the pool takes tasks, and retired while it is being deleted.
	open, retired bool
	// size is the number of tasks that have a place or wait for one. tasks has those that the cache shows, and short those that wait for
	// room in the quota of the namespace, with what they say of it.
	size  int
	tasks map[types.UID]place
	short map[types.UID]string
	ended agentprogram.PoolEnd
	// empty is when the last task left.
	empty time.Time
}

// place is what a task of a pool says of itself.
type place struct {
	name     string
	state    v1alpha1.TaskExecutionState
	working  bool
	attempt  int32
	reserved time.Time
	// reason and message say what the task waits for before its work begins.
	reason, message string
}

// NewPools returns an empty ledger.
func NewPools(now func() time.Time) *Pools {
	return &Pools{now: now, rooms: map[types.NamespacedName]*poolRoom{}, of: map[types.UID]types.NamespacedName{}}
}

// OnChange sets the function that is called with a pool whose use has changed. It must not block.
func (p *Pools) OnChange(changed func(pool types.NamespacedName)) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.changed = changed
	for key := range p.rooms {
		changed(key)
	}
}

// Admit says what a pool takes on, and whether it takes anything. Tasks that wait for one that takes nothing are woken, because there
// may be another pool for them.
func (p *Pools) Admit(pool types.NamespacedName, limits agentprogram.PoolLimits, open bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	room := p.room(pool)
	if room.retired {
		return
	}
	closes := room.open && !open
	room.limits, room.open = limits, open
	p.apply(room)
	if closes {
		room.wakeWaiting()
	}
}

// Retire closes a pool for its deletion. It reports false if there are tasks in it.
func (p *Pools) Retire(pool types.NamespacedName) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	room := p.room(pool)
	if !p.begun || room.size > 0 {
		return false
	}
	room.retired = true
	p.apply(room)
	return true
}

// Keep opens a pool again that was not deleted after all.
func (p *Pools) Keep(pool types.NamespacedName) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if room, ok := p.rooms[pool]; ok {
		room.retired = false
		p.apply(room)
	}
}

// Gone notes that a pool was deleted. Tasks that wait for it are woken, and make another one.
func (p *Pools) Gone(pool types.NamespacedName) {
	p.mu.Lock()
	defer p.mu.Unlock()
	room, ok := p.rooms[pool]
	if !ok {
		return
	}
	room.retired = false
	room.wakeWaiting()
	p.apply(room)
	if room.size == 0 {
		delete(p.rooms, pool)
	}
}

// Use returns what of a pool is in use, as the tasks say it; false while that is not known. A change of the pool follows then.
func (p *Pools) Use(pool types.NamespacedName) (agentprogram.PoolUse, bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.begun {
		return agentprogram.PoolUse{}, false
	}
	room := p.room(pool)
	u := agentprogram.PoolUse{Tasks: room.size, Ended: room.ended, EmptySince: room.empty, Waits: map[string]string{}}
	for _, uid := range slices.Sorted(maps.Keys(room.tasks)) {
		m := room.tasks[uid]
		if m.reason != "" {
			u.Waits[m.reason] = m.message
		}
		if m.state == v1alpha1.ExecutionQueued {
			u.Queued++
			continue
		}
		u.Resident++
		if m.working {
			u.Running++
		}
		if m.state == v1alpha1.ExecutionReserved {
			u.Reserved++
			r := v1alpha1.RuntimePoolReservation{TaskName: m.name, TaskUID: uid}
			if !m.reserved.IsZero() {
				r.ExpiresAt = &metav1.Time{Time: m.reserved.Add(startPatience)}
			}
			u.Reservations = append(u.Reservations, r)
		}
	}
	slices.SortFunc(u.Reservations, func(a, b v1alpha1.RuntimePoolReservation) int { return cmp.Compare(a.TaskName, b.TaskName) })
	u.Reservations = u.Reservations[:min(len(u.Reservations), maxReservations)]
	return u, true
}

// maxReservations is how many reservations a status may list.
const maxReservations = 256

func (p *Pools) room(pool types.NamespacedName) *poolRoom {
	room, ok := p.rooms[pool]
	if !ok {
		room = &poolRoom{
			slots: newSlots(unknown, 0, fairshare.Shares{}, p.now, p.shows), tasks: map[types.UID]place{}, short: map[types.UID]string{}, empty: p.now(),
		}
		room.pool = true
		if p.wake != nil {
			room.wakeBy(p.wake)
		}
		p.rooms[pool] = room
	}
	return room
}

// apply sets the limits that hold now. A pool of which a task waits for room in the quota of the namespace takes no others, because they
// would only wait there, too.
func (p *Pools) apply(r *poolRoom) {
	if p.begun && r.open && !r.retired && len(r.short) == 0 {
		r.limitPool(int(r.limits.MaxResidentSessions), int(r.limits.MaxRunningPrompts))
		return
	}
	r.limitPool(unknown, 0)
}

// begin is called when all tasks that existed at the start are noted.
func (p *Pools) begin() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.begun = true
	for pool, room := range p.rooms {
		p.apply(room)
		p.tell(pool)
	}
}

// take gives the task a place in a pool for its next attempt, or returns a queued error while it has to wait. A task that waited for
// another pool leaves that one. The limits are used until Admit is called.
func (p *Pools) take(ctx context.Context, t *v1alpha1.Task, pool types.NamespacedName, limits agentprogram.PoolLimits) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if was, ok := p.of[t.UID]; ok && was != pool {
		p.remove(t)
	}
	room := p.join(t, pool)
	if room.limits == (agentprogram.PoolLimits{}) {
		room.limits, room.open = limits, true
		p.apply(room)
	}
	err := room.take(ctx, t)
	if _, ok := errors.AsType[queued](err); ok {
		return queued{v1alpha1.ReasonRuntimePoolFull, step.Wait{Reason: room.why(pool.Name)}}
	}
	return err
}

// why says what a task waits for that gets no place.
func (r *poolRoom) why(name string) string {
	for _, why := range r.short {
		return fmt.Sprintf("the pool %s takes no tasks while one of them waits: %s", name, why)
	}
	switch {
	case r.retired:
		return fmt.Sprintf("the pool %s is being deleted, because it was idle; it is made again", name)
	case !r.open:
		return fmt.Sprintf("the pool %s takes no tasks", name)
	}
	return fmt.Sprintf("the pool %s has its limit of %d sessions or %d running prompts; the next place goes by priority and age", name, r.limits.MaxResidentSessions, r.limits.MaxRunningPrompts)
}

// leave gives back a place that the task was given and cannot use now.
func (p *Pools) leave(ctx context.Context, t *v1alpha1.Task) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	pool, ok := p.of[t.UID]
	if !ok {
		return nil
	}
	return p.rooms[pool].leave(ctx, t)
}

func (p *Pools) observe(t *v1alpha1.Task) { p.note(t, (*slots).observe) }

func (p *Pools) remember(t *v1alpha1.Task) {
	p.note(t, func(s *slots, t *v1alpha1.Task) { s.recall(t, t.Status.Execution.State == v1alpha1.ExecutionQueued) })
}

// note notes a version of a task that the cache shows.
func (p *Pools) note(t *v1alpha1.Task, tell func(*slots, *v1alpha1.Task)) {
	p.mu.Lock()
	defer p.mu.Unlock()
	pool, known := p.of[t.UID]
	if !known {
		e := t.Status.Execution
		if e == nil || e.RuntimePoolName == "" {
			return
		}
		pool = types.NamespacedName{Namespace: t.Namespace, Name: e.RuntimePoolName}
	}
	if t.Status.Phase.Terminal() {
		p.room(pool).end(t)
		p.remove(t)
		return
	}
	room := p.join(t, pool)
	if m := placeOf(t); m.state != "" && m != room.tasks[t.UID] {
		room.tasks[t.UID] = m
		delete(room.short, t.UID)
		if m.reason == v1alpha1.ReasonQuotaExceeded {
			room.short[t.UID] = m.message
		}
		p.tell(pool)
	}
	p.apply(room)
	tell(room.slots, t)
}

// join notes that a task has a place in a pool or wants one.
func (p *Pools) join(t *v1alpha1.Task, pool types.NamespacedName) *poolRoom {
	room := p.room(pool)
	if _, ok := p.of[t.UID]; !ok {
		p.of[t.UID] = pool
		room.size++
	}
	return room
}

func (p *Pools) forget(t *v1alpha1.Task) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.remove(t)
}

// remove takes a task out of its pool.
func (p *Pools) remove(t *v1alpha1.Task) {
	pool, ok := p.of[t.UID]
	if !ok {
		return
	}
	room := p.rooms[pool]
	delete(p.of, t.UID)
	delete(room.tasks, t.UID)
	delete(room.short, t.UID)
	if room.size--; room.size == 0 {
		room.empty = p.now()
	}
	room.forget(t)
	p.apply(room)
	p.tell(pool)
}

func (p *Pools) tell(pool types.NamespacedName) {
	if p.changed != nil {
		p.changed(pool)
	}
}

func (p *Pools) wakeBy(wake func(types.NamespacedName)) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.wake = wake
	for _, room := range p.rooms {
		room.wakeBy(wake)
	}
}

// end notes how a task ended.
func (r *poolRoom) end(t *v1alpha1.Task) {
	at := t.Status.CompletionTime
	if at == nil || at.Time.Before(r.ended.At) {
		return
	}
	r.ended = agentprogram.PoolEnd{At: at.Time}
	if c := meta.FindStatusCondition(t.Status.Conditions, v1alpha1.ConditionFailed); c != nil && c.Status == metav1.ConditionTrue {
		r.ended.Reason, r.ended.Message = c.Reason, c.Message
	}
}

// placeOf returns what a task says of its place. The state is empty if it says nothing.
func placeOf(t *v1alpha1.Task) place {
	e := t.Status.Execution
	if e == nil {
		return place{}
	}
	m := place{name: t.Name, state: e.State, working: works(t), attempt: e.Attempt}
	if m.state == v1alpha1.ExecutionReserved && e.LastTransitionTime != nil {
		m.reserved = e.LastTransitionTime.Time
	}
	if c := waitingCondition(t); c != nil {
		m.reason, m.message = c.Reason, c.Message
	}
	return m
}
