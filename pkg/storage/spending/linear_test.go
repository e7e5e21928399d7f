// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package spending_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"

	"k8s.io/apimachinery/pkg/types"

	"github.com/platform-ai/platform/pkg/budget"
	"github.com/platform-ai/platform/pkg/storage/engine"
	"github.com/platform-ai/platform/pkg/storage/engine/local"
	"github.com/platform-ai/platform/pkg/storage/engine/local/localtest"
	"github.com/platform-ai/platform/pkg/storage/spending"
)

// Three budgets overlap: a request counts towards the ones in its set of bits.
const (
	budgets = 3
	clients = 5
	each    = 5 // operations of one client
)

var limits = [budgets]int64{90, 70, 50}

type action int

const (
	begin action = iota
	end
	read
	restart // the process was killed, and another one opened the store
)

// op is one operation, from its call until its return in the order of all calls and returns. What was under way when the
// process was killed never returned: it may have happened or not.
type op struct {
	action
	client   int
	set      uint
	n        int64 // what a begin reserves, and what an end spends
	ok       bool  // the answer of a begin
	seen     [budgets]budget.Account
	from, to int64
}

func (o *op) returned() bool { return o.to < math.MaxInt64 }

// model is the state of all budgets, as a specification of them.
type model struct {
	spent, reserved [budgets]int64
	restarted       bool // nothing that was under way happens any more
	open            [clients]struct {
		set uint
		n   int64
	}
}

// apply returns the state after an operation, and whether the operation may have answered what it did.
func (m model) apply(o *op) (model, bool) {
	if m.restarted && !o.returned() {
		return m, false
	}
	switch o.action {
	case begin:
		fits := true
		for b := range budgets {
			fits = fits && (o.set>>b&1 == 0 || m.spent[b]+m.reserved[b]+o.n <= limits[b])
		}
		if o.returned() && o.ok != fits {
			return m, false
		}
		if fits {
			m.open[o.client].set, m.open[o.client].n = o.set, o.n
			for b := range budgets {
				m.reserved[b] += o.n * int64(o.set>>b&1)
			}
		}
	case end:
		held := m.open[o.client]
		for b := range budgets {
			m.reserved[b] -= held.n * int64(held.set>>b&1)
			m.spent[b] += o.n * int64(held.set>>b&1)
		}
		m.open[o.client].set, m.open[o.client].n = 0, 0
	case restart:
		for b := range budgets { // nobody knows what was used of it
			m.spent[b] += m.reserved[b]
		}
		m = model{spent: m.spent, restarted: true}
	case read:
		for b := range budgets {
			if o.seen[b].Spent != m.spent[b] || o.seen[b].Reserved != m.reserved[b] {
				return m, false
			}
		}
	}
	return m, true
}

// linearizable reports whether the operations can be put into one order, in which each takes place between its call and
// its return, that the specification allows.
func linearizable(history []*op) bool {
	type place struct {
		done uint64
		model
	}
	seen := map[place]bool{}
	var search func(place) bool
	search = func(p place) bool {
		if seen[p] {
			return false
		}
		seen[p] = true
		first := int64(math.MaxInt64) // the earliest return that is still missing
		for i, o := range history {
			if p.done>>i&1 == 0 {
				first = min(first, o.to)
			}
		}
		if first == math.MaxInt64 {
			return true
		}
		for i, o := range history {
			if p.done>>i&1 == 1 || o.from > first {
				continue
			}
			if next, ok := p.apply(o); ok && search(place{p.done | 1<<i, next}) {
				return true
			}
		}
		return false
	}
	return search(place{})
}

// play runs clients in parallel, kills the process in the middle if kill is set, and returns all operations.
func play(t *testing.T, seed uint64, kill bool) []*op {
	t.Helper()
	disk := localtest.NewDisk()
	start := func(d *localtest.Disk) (*spending.Store, engine.Engine) {
		e, err := local.Open(t.Context(), local.Options{Dir: localtest.Dir, FS: d.FS()})
		if err != nil {
			t.Fatal(err)
		}
		s, err := spending.Open(e, fixed())
		if err != nil {
			t.Fatal(err)
		}
		return s, e
	}
	s, e := start(disk)
	var now, count atomic.Int64
	var mu sync.Mutex
	var history []*op
	do := func(o *op, f func() error) {
		o.from = now.Add(1)
		err := f()
		if o.ok = err == nil; err != nil && !isExhausted(err) {
			t.Error(err)
		}
		o.to = now.Add(1)
		mu.Lock()
		defer mu.Unlock()
		history = append(history, o)
		count.Add(1)
	}
	look := func(s *spending.Store, o *op) error {
		all := s.Balances("0", "1", "2")
		for b := range budgets {
			for _, a := range all[types.UID(fmt.Sprint(b))] {
				o.seen[b] = a.Account
			}
		}
		return nil
	}
	var work sync.WaitGroup
	for client := range clients {
		work.Go(func() {
			r := rand.New(rand.NewPCG(seed, uint64(client)))
			for i := 0; i < each; i++ {
				o := &op{client: client, set: 1 + r.UintN(7), n: 1 + r.Int64N(40)}
				var charges []budget.Charge
				for b := range budgets {
					if o.set>>b&1 == 1 {
						charges = append(charges, charge(fmt.Sprint(b), "", limits[b]))
					}
				}
				call := fmt.Sprint(client, "-", i)
				do(o, func() error { return s.Commit(engine.Grow, s.Begin(call, charges, tokens(o.n))) })
				if i++; i < each && !kill && r.IntN(3) == 0 { // a read shows what is not durable yet
					l := &op{action: read, client: client}
					do(l, func() error { return look(s, l) })
				}
				if i++; o.ok && i < each {
					l := &op{action: end, client: client, n: 1 + r.Int64N(o.n)}
					do(l, func() error { return s.Commit(engine.Upkeep, s.End(call, output(l.n), nil)) })
				}
			}
		})
	}
	if kill {
		for count.Load() < int64(seed%12) { // the moment of the kill depends on the seed
			runtime.Gosched()
		}
		before := now.Add(1)
		disk = disk.Crash(int(seed%3)*50, seed)
		after := now.Add(1)
		work.Wait()
		var kept []*op
		for _, o := range history {
			if o.from > after {
				continue // it was called after the kill
			}
			if o.to > before {
				o.to = math.MaxInt64
			}
			kept = append(kept, o)
		}
		again, other := start(disk)
		defer other.Close()
		history = kept
		history = append(history, &op{action: restart, from: after, to: after + 1})
		l := &op{action: read, from: after + 2, to: after + 3}
		_ = look(again, l) // it cannot fail
		history = append(history, l)
	}
	work.Wait()
	if err := e.Close(); err != nil {
		t.Error(err)
	}
	return history
}

// TestLinearizable: parallel requests of three overlapping budgets are as if they had been made one after the other, and so
// is what a process finds that opens the store after the other was killed: what had been spent or reserved is spent,
// and what was under way happened as a whole or not at all.
func TestLinearizable(t *testing.T) {
	t.Parallel()
	refused, pending := 0, 0
	for seed := range uint64(150) {
		kill := seed%2 == 1
		history := play(t, seed, kill)
		if !linearizable(history) {
			for _, o := range history {
				t.Logf("%+v", *o)
			}
			t.Fatalf("history %d cannot be explained", seed)
		}
		for _, o := range history {
			if o.action == begin && o.returned() && !o.ok {
				refused++
			}
			if !o.returned() {
				pending++
			}
			if o.action == read { // and never too much
				for b := range budgets {
					if o.seen[b].Spent+o.seen[b].Reserved > limits[b] {
						t.Errorf("history %d: budget %d has %+v", seed, b, o.seen[b])
					}
				}
			}
		}
	}
	if refused < 100 || pending < 20 {
		t.Errorf("%d requests were refused and %d were under way at a kill", refused, pending)
	}
	// The check finds what is wrong: a request that does not fit beside the one before it.
	wrong := []*op{
		{action: begin, client: 0, set: 1, n: 60, ok: true, from: 1, to: 2},
		{action: begin, client: 1, set: 1, n: 60, ok: true, from: 3, to: 4},
	}
	if linearizable(wrong) {
		t.Error("two requests of 60 of 90 are accepted")
	}
}
