// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package enginetest

import (
	"errors"
	"fmt"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/platform-ai/platform/pkg/storage/engine"
)

// Sequence and Publish run in one order and never two at a time, and Commit returns after its own Publish.
func testOrder(t *testing.T, p Place) {
	e := open(t, p)
	var f feed
	var busy atomic.Int32
	var wg sync.WaitGroup
	const writers, each = 16, 25
	for w := range writers {
		wg.Go(func() {
			for i := range each {
				published := false
				txn := &put{key: fmt.Sprintf("%d/%d", w, i), n: 1 + i%3, size: 100}
				txn.publish = func(rev uint64) {
					if busy.Add(1) != 1 {
						t.Error("two Publish at a time")
					}
					f.add(rev)
					published = true
					busy.Add(-1)
				}
				if err := e.Commit(txn); err != nil {
					t.Error(err)
					return
				}
				if !published || e.Revision() < txn.rev {
					t.Errorf("acknowledged %d before it was published (%v), revision %d", txn.rev, published, e.Revision())
				}
			}
		})
	}
	wg.Wait()
	revs := f.list()
	if len(revs) != writers*each || !slices.IsSorted(revs) || e.Revision() != revs[len(revs)-1] {
		t.Errorf("%d published, in order: %v; revision %d", len(revs), slices.IsSorted(revs), e.Revision())
	}
}

// Writers that wait form groups, in which each has its own outcome.
func testGroups(t *testing.T, p Place) {
	e := open(t, p)
	gate, no := make(chan struct{}), errors.New("no")
	var wg sync.WaitGroup
	var stored atomic.Int64
	wg.Go(func() { commit(t, e, &put{key: "first", before: func() { <-gate }}) })
	for i := range 40 {
		wg.Go(func() {
			txn := &put{key: strconv.Itoa(i), size: 1000}
			if i%4 == 3 {
				txn.refuse = no
			}
			switch err := e.Commit(txn); {
			case i%4 == 3 && !errors.Is(err, no), i%4 != 3 && err != nil:
				t.Errorf("writer %d: %v", i, err)
			case err == nil:
				stored.Add(1)
			}
		})
	}
	close(gate)
	wg.Wait()
	found := rows(t, e)
	seen := map[uint64]string{}
	for key, rev := range found {
		if seen[rev] != "" {
			t.Errorf("%s and %s have one revision", key, seen[rev])
		}
		seen[rev] = key
	}
	if stored.Load() != 30 || len(found) != 31 || e.Revision() != 32 {
		t.Errorf("%d acknowledged, %d stored, revision %d", stored.Load(), len(found), e.Revision())
	}
}

// The counter is dense from 2, and continues where it was after a restart.
func testRevisions(t *testing.T, p Place) {
	e := open(t, p)
	id := e.ID()
	if e.Revision() != 1 || e.Base() != 0 || id == "" {
		t.Errorf("fresh store: revision %d, base %d, identity %q", e.Revision(), e.Base(), id)
	}
	if a, b := commit(t, e, &put{key: "a"}), commit(t, e, &put{key: "b", n: 3}); a != 2 || b != 5 {
		t.Errorf("revisions %d and %d, want 2 and 5", a, b)
	}
	if rev, err := e.Bump(10); err != nil || rev != 15 || e.Revision() != 15 {
		t.Errorf("bump to %d, revision %d: %v", rev, e.Revision(), err)
	}
	if rev, err := e.Rebase(100); err != nil || rev != 115 {
		t.Errorf("rebase to %d: %v", rev, err)
	}
	shut(t, e)
	e = open(t, p)
	if e.Revision() != 115 || e.Base() != 115 || e.ID() != id {
		t.Errorf("opened again: revision %d, base %d, the same identity: %v", e.Revision(), e.Base(), e.ID() == id)
	}
	if rev := commit(t, e, &put{key: "c"}); rev != 116 {
		t.Errorf("the next revision is %d", rev)
	}
}

// A refused Txn leaves neither rows nor revisions, and is not published.
func testRefused(t *testing.T, p Place) {
	e := open(t, p)
	no := errors.New("no")
	txn := &put{key: "a", n: 5, refuse: no, publish: func(uint64) { t.Error("a refused Txn was published") }}
	if err := e.Commit(txn); !errors.Is(err, no) {
		t.Errorf("refused: %v", err)
	}
	if rev := commit(t, e, &put{key: "b"}); rev != 2 {
		t.Errorf("its revisions are not given again: %d", rev)
	}
	if diff := cmp.Diff(map[string]uint64{"b": 2}, rows(t, e)); diff != "" {
		t.Error(diff)
	}
}

// A Txn that writes nothing takes no revision, is accepted whatever room there is, and is published after those before it.
func testNothing(t *testing.T, p Place) {
	p.Leave(Plenty)
	e := open(t, p)
	commit(t, e, &put{key: "k"})
	no := errors.New("no")
	for _, room := range []Room{Plenty, ForUpkeep, ForFree, ForNothing} {
		p.Leave(room)
		txn := &nothing{}
		if err := e.Commit(txn); err != nil || txn.published != 1 || e.Revision() != 2 {
			t.Errorf("room %d: %v, published %d times, revision %d", room, err, txn.published, e.Revision())
		}
		if err := e.Room(engine.Nothing, 0); err != nil {
			t.Errorf("room %d, for a batch: %v", room, err)
		}
		txn = &nothing{refuse: no}
		if err := e.Commit(txn); !errors.Is(err, no) || txn.published != 0 {
			t.Errorf("room %d, refused: %v, published %d times", room, err, txn.published)
		}
	}
	p.Leave(Plenty)

	gate, sequenced := make(chan struct{}), make(chan struct{})
	var published atomic.Bool
	var writer, started, waiters sync.WaitGroup
	writer.Go(func() {
		txn := &put{key: "before", before: func() { close(sequenced); <-gate }, publish: func(uint64) { published.Store(true) }}
		if err := e.Commit(txn); err != nil {
			t.Error(err)
		}
	})
	<-sequenced
	for range 8 {
		started.Add(1)
		waiters.Go(func() {
			started.Done()
			if err := e.Commit(&nothing{}); err != nil || !published.Load() {
				t.Errorf("commit of nothing: %v; the write before it was published: %v", err, published.Load())
			}
			if _, ok, err := e.Get([]byte("tbefore")); !ok || err != nil {
				t.Errorf("the write before it cannot be read: %v %v", ok, err)
			}
		})
	}
	started.Wait()
	close(gate)
	writer.Wait()
	waiters.Wait()
}

// overlapper is a put with work besides.
type overlapper struct {
	put
	calls int    // of Overlap that have ended
	on    string // goroutine of the last one
}

func (o *overlapper) Overlap() {
	o.on = goroutine()
	runtime.Gosched()
	o.calls++ // the goroutine of Commit reads it afterwards
}

// idle is an overlapper that writes nothing.
type idle struct{ overlapper }

func (*idle) Need() engine.Need { return engine.Nothing }

func (*idle) Sequence(engine.Batch) error { return nil }

// goroutine names the current goroutine.
func goroutine() string {
	var b [64]byte
	name, _, _ := strings.Cut(string(b[:runtime.Stack(b[:], false)]), " [")
	return name
}

// Overlap runs once, on the goroutine of Commit, before Commit returns. For a Txn that is refused or writes nothing it may
// not run.
func testOverlap(t *testing.T, p Place) {
	e := open(t, p)
	alone := &overlapper{put: put{key: "alone"}}
	if err := e.Commit(alone); err != nil || alone.calls != 1 || alone.on != goroutine() {
		t.Errorf("alone: %v, overlapped %d times on %s", err, alone.calls, alone.on)
	}
	no := errors.New("no")
	var wg sync.WaitGroup
	for w := range 16 {
		wg.Go(func() {
			for i := range 25 {
				writer := &overlapper{put: put{key: fmt.Sprintf("%d/%d", w, i), size: 100}}
				if err := e.Commit(writer); err != nil || writer.calls != 1 || writer.on != goroutine() {
					t.Errorf("writer %d: %v, overlapped %d times on %s, not on %s", w, err, writer.calls, writer.on, goroutine())
				}
				refused := &overlapper{put: put{key: "refused", refuse: no}}
				if err := e.Commit(refused); !errors.Is(err, no) || refused.calls > 1 {
					t.Errorf("refused: %v, overlapped %d times", err, refused.calls)
				}
				waiter := &idle{}
				if err := e.Commit(waiter); err != nil || waiter.calls > 1 {
					t.Errorf("it writes nothing: %v, overlapped %d times", err, waiter.calls)
				}
			}
		})
	}
	wg.Wait()
}

// A batch without revisions is atomic, keeps the order of its writes, and copies keys and values.
func testBatches(t *testing.T, p Place) {
	e := open(t, p)
	for i := range 10 {
		commit(t, e, &put{key: strconv.Itoa(i)})
	}
	for _, apply := range []func(engine.Batch) error{
		func(b engine.Batch) error { return e.Apply(b, engine.Sync) },
		func(b engine.Batch) error { return e.Apply(b, engine.NoSync) },
		func(b engine.Batch) error {
			wait, err := e.ApplyInOrder(b)
			if err == nil {
				err = wait()
			}
			return err
		},
	} {
		b, err := e.NewBatch()
		if err != nil {
			t.Fatal(err)
		}
		if rev := b.Next(); rev != 0 {
			t.Errorf("it got revision %d", rev)
		}
		k, v := []byte("tx"), []byte("12345678")
		err = errors.Join(b.Set(k, v), b.DeleteRange([]byte("t2"), []byte("t8")), b.Delete([]byte("t9")))
		k[1], v[0] = 'y', '9'
		dk, dv, finish := b.SetDeferred(2, 8)
		copy(dk, "tz")
		copy(dv, "87654321")
		if err := errors.Join(err, finish()); err != nil || b.Len() == 0 {
			t.Fatal(err)
		}
		if _, ok, err := e.Get([]byte("tx")); ok || err != nil {
			t.Errorf("it is visible before it is applied: %v %v", ok, err)
		}
		if err := apply(b); err != nil {
			t.Fatal(err)
		}
		b.Discard()
		var keys []string
		for k := range rows(t, e) {
			keys = append(keys, k)
		}
		slices.Sort(keys)
		if diff := cmp.Diff([]string{"0", "1", "8", "x", "z"}, keys); diff != "" {
			t.Error(diff)
		}
		if v, ok, err := e.Get([]byte("tx")); !ok || err != nil || string(v) != "12345678" {
			t.Errorf("%q %v %v", v, ok, err)
		}
		b, err = e.NewBatch() // as it was
		if err != nil {
			t.Fatal(err)
		}
		if err := errors.Join(b.Delete([]byte("tx")), b.Delete([]byte("tz")), e.Apply(b, engine.Sync)); err != nil {
			t.Fatal(err)
		}
	}
	if e.Revision() != 11 {
		t.Errorf("batches moved the revision to %d", e.Revision())
	}
	b, err := e.NewBatch()
	if err != nil {
		t.Fatal(err)
	}
	if err := b.Set([]byte("tnever"), nil); err != nil {
		t.Error(err)
	}
	b.Discard()
	b.Discard()
	if _, ok, err := e.Get([]byte("tnever")); ok || err != nil {
		t.Errorf("a discarded batch: %v %v", ok, err)
	}
}

// The loser of a race is answered after the winner is published. State published under a lock with Advance
// is never newer than Revision, and Revision is never newer than the state.
func testChangeFeed(t *testing.T, p Place) {
	e := open(t, p)
	var mu sync.Mutex
	var state, sequenced uint64
	lost := errors.New("lost")
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			for range 50 {
				mu.Lock()
				seen := state
				if seen != 0 && seen > e.Revision() {
					t.Errorf("state %d, revision %d", seen, e.Revision())
				}
				mu.Unlock()
				err := e.Commit(&swap{seen: seen, sequenced: &sequenced, lost: lost, publish: func(rev uint64) {
					mu.Lock()
					defer mu.Unlock()
					state = rev
					e.Advance(rev)
				}})
				if errors.Is(err, lost) {
					mu.Lock()
					if state == seen {
						t.Error("the loser reads the state with which it lost")
					}
					mu.Unlock()
				} else if err != nil {
					t.Error(err)
				}
			}
		})
	}
	wg.Wait()
}

// swap is a compare-and-swap of one register. sequenced is touched by the commit leader alone.
type swap struct {
	seen      uint64
	sequenced *uint64
	lost      error
	publish   func(uint64)
	rev       uint64
}

func (s *swap) Sequence(b engine.Batch) error {
	if *s.sequenced != s.seen {
		return s.lost
	}
	s.rev = b.Next()
	*s.sequenced = s.rev
	return b.Set([]byte("tregister"), make([]byte, 8))
}

func (s *swap) Publish() { s.publish(s.rev) }
