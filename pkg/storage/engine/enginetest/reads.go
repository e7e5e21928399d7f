// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package enginetest

import (
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/platform-ai/platform/pkg/storage/engine"
)

// An iterator is ordered by bytes, keeps to its bounds, and sees the state at the moment it was made.
func testIterators(t *testing.T, p Place) {
	e := open(t, p)
	for _, k := range []string{"b", "a", "c\x00", "c", "\xff"} {
		commit(t, e, &put{key: k})
	}
	it, err := e.NewIter([]byte("t"), []byte("u"))
	if err != nil {
		t.Fatal(err)
	}
	commit(t, e, &put{key: "aa"})
	b, err := e.NewBatch()
	if err == nil {
		err = errors.Join(b.DeleteRange([]byte("ta"), []byte("tc")), e.Apply(b, engine.Sync))
	}
	if err != nil {
		t.Fatal(err)
	}
	at := func(ok bool) string {
		if !ok || !it.Valid() {
			return "none"
		}
		return string(it.Key()[1:])
	}
	got := []string{
		at(it.First()), at(it.Next()), at(it.Next()), at(it.Next()), at(it.Next()), at(it.Next()),
		at(it.Last()), at(it.Prev()), at(it.SeekGE([]byte("taa"))), at(it.SeekLT([]byte("tb"))), at(it.SeekLT([]byte("ta"))), at(it.SeekGE([]byte("x"))),
	}
	want := []string{"a", "b", "c", "c\x00", "\xff", "none", "\xff", "c\x00", "b", "a", "none", "none"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	if err := errors.Join(it.Error(), it.Close(), it.Close()); err != nil {
		t.Error(err)
	}
	if diff := cmp.Diff(map[string]uint64{"c": 5, "c\x00": 4, "\xff": 6}, rows(t, e)); diff != "" {
		t.Error(diff)
	}
}

// After a crash at any moment, every published write is found with its revision, and no revision is assigned twice.
func testCrash(t *testing.T, p Place) {
	for seed := range uint64(4) {
		e, err := p.Open(func(err error) { t.Errorf("fatal: %v", err) })
		if err != nil {
			t.Fatal(err)
		}
		var mu sync.Mutex
		promised := rows(t, e)
		var stop atomic.Bool
		var wg sync.WaitGroup
		enough := make(chan struct{})
		var count atomic.Int64
		for w := range 8 {
			wg.Go(func() {
				for i := 0; !stop.Load(); i++ {
					txn := &put{key: fmt.Sprintf("%d/%d/%d", seed, w, i)}
					txn.publish = func(rev uint64) {
						mu.Lock()
						defer mu.Unlock()
						promised[txn.key] = rev
					}
					if err := e.Commit(txn); err != nil {
						t.Error(err)
						return
					}
					if count.Add(1) == 100 {
						close(enough)
					}
				}
			})
		}
		<-enough
		mu.Lock()
		before := maps.Clone(promised)
		mu.Unlock()
		crashed := p.Crash(seed)
		stop.Store(true)
		wg.Wait()
		shut(t, e)
		p = crashed
		found := open(t, p)
		have := rows(t, found)
		seen := map[uint64]bool{}
		for key, rev := range have {
			if seen[rev] || rev > found.Revision() {
				t.Errorf("%s has revision %d; given before: %v; the store is at %d", key, rev, seen[rev], found.Revision())
			}
			seen[rev] = true
		}
		for key, rev := range before {
			if have[key] != rev {
				t.Fatalf("%s was published at %d, and is found at %d", key, rev, have[key])
			}
		}
		shut(t, found)
	}
}

// After a failed write nothing is acknowledged or published, the owner is notified once, and a restart works.
func testFailure(t *testing.T, p Place) {
	fatal := make(chan error, 10)
	e, err := p.Open(func(err error) { fatal <- err })
	if err != nil {
		t.Fatal(err)
	}
	commit(t, e, &put{key: "before"})
	p.Fail()
	var wg sync.WaitGroup
	for w := range 8 {
		wg.Go(func() {
			txn := &put{key: strconv.Itoa(w), publish: func(uint64) { t.Error("published after a failure") }}
			if err := e.Commit(txn); !errors.Is(err, engine.ErrFailed) {
				t.Errorf("commit: %v", err)
			}
		})
	}
	wg.Wait()
	if err := <-fatal; !errors.Is(err, engine.ErrFailed) {
		t.Errorf("fatal: %v", err)
	}
	if err := e.Commit(&nothing{}); !errors.Is(err, engine.ErrFailed) {
		t.Errorf("commit of nothing: %v", err)
	}
	if b, err := e.NewBatch(); err != nil || !errors.Is(e.Apply(b, engine.Sync), engine.ErrFailed) {
		t.Errorf("a batch after the failure (%v)", err)
	}
	if _, err := e.Checkpoint(t.Context()); !errors.Is(err, engine.ErrFailed) {
		t.Errorf("checkpoint: %v", err)
	}
	if err := e.Healthy(); !errors.Is(err, engine.ErrFailed) || e.Revision() != 2 {
		t.Errorf("health %v, revision %d", err, e.Revision())
	}
	if err := e.Ready(); !errors.Is(err, engine.ErrFailed) {
		t.Errorf("ready: %v", err)
	}
	if err := e.Close(); !errors.Is(err, engine.ErrFailed) {
		t.Errorf("close: %v", err)
	}
	if len(fatal) > 0 {
		t.Errorf("told again: %v", <-fatal)
	}
	found := open(t, p.Crash(0))
	if have := rows(t, found); have["before"] != 2 {
		t.Errorf("found %v", have)
	}
	commit(t, found, &put{key: "after"})
}

// As room runs out, Grow is refused first, then Upkeep, last Free. All are accepted again without a restart.
func testRoom(t *testing.T, p Place) {
	p.Leave(Plenty)
	e := open(t, p)
	commit(t, e, &put{key: "k"})
	for _, room := range []Room{Plenty, ForUpkeep, ForFree, ForNothing, ForFree, Plenty} {
		p.Leave(room)
		for _, need := range []engine.Need{engine.Grow, engine.Upkeep, engine.Free} {
			taken := int(need) >= int(room)
			revision := e.Revision()
			err := e.Commit(&put{key: "k", need: need})
			if (err == nil) != taken || err != nil && (!errors.Is(err, engine.ErrFull) || e.Revision() != revision) {
				t.Errorf("room %d, need %d: %v", room, need, err)
			}
			if err := e.Room(need, 10); (err == nil) != taken || err != nil && !errors.Is(err, engine.ErrFull) {
				t.Errorf("room %d, need %d for a batch: %v", room, need, err)
			}
		}
		if e.Full() != (room != Plenty) || e.Healthy() != nil || e.Ready() != nil {
			t.Errorf("room %d: full %v, health %v, ready %v", room, e.Full(), e.Healthy(), e.Ready())
		}
		if _, ok, err := e.Get([]byte("tk")); !ok || err != nil {
			t.Errorf("room %d: %v %v", room, ok, err)
		}
		e.Reclaim(t.Context(), []byte("t"), []byte("u"))
	}
}

// A checkpoint holds one state, is not changed by later writes, and restores the same store.
func testCheckpoint(t *testing.T, p Place) {
	e := open(t, p)
	commit(t, e, &put{key: "a", n: 2})
	c, err := e.Checkpoint(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	commit(t, e, &put{key: "b"})
	if _, err := e.Checkpoint(t.Context()); !errors.Is(err, engine.ErrCheckpoint) {
		t.Errorf("a second one: %v", err)
	}
	if _, err := c.Open("../" + c.Files()[0].Name); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("a file that it does not have: %v", err)
	}
	for _, f := range c.Files() {
		r, err := c.Open(f.Name)
		if err != nil {
			t.Fatal(err)
		}
		n, err := io.Copy(io.Discard, r)
		if err := errors.Join(err, r.Close()); err != nil || n != f.Size {
			t.Errorf("%s has %d bytes, want %d: %v", f.Name, n, f.Size, err)
		}
	}
	again, err := p.Restore(c)
	if err != nil {
		t.Fatal(err)
	}
	restored := open(t, again)
	if diff := cmp.Diff(map[string]uint64{"a": 3}, rows(t, restored)); diff != "" || c.Revision() != 3 || restored.Revision() != 3 {
		t.Errorf("checkpoint at %d, store at %d: %s", c.Revision(), restored.Revision(), diff)
	}
	if restored.ID() != e.ID() || c.Layout() == "" {
		t.Errorf("the copy is another store, or its layout is not known: %q", c.Layout())
	}
	if err := c.Close(); err != nil {
		t.Error(err)
	}
	c, err = e.Checkpoint(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Close(); err != nil || c.Revision() != 4 {
		t.Errorf("the next one is at %d: %v", c.Revision(), err)
	}
}

// While a store is open, no other engine can open it.
func testOneWriter(t *testing.T, p Place) {
	e := open(t, p)
	if other, err := p.Open(nil); !errors.Is(err, engine.ErrLocked) {
		t.Errorf("opened twice: %v %v", other, err)
	}
	commit(t, e, &put{key: "a"}) // the first one goes on
	shut(t, e)
	open(t, p)
}

// Close waits for open iterators and operations, and refuses new ones.
func testClose(t *testing.T, p Place) {
	e := open(t, p)
	commit(t, e, &put{key: "a"})
	it, err := e.NewIter(nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	closed := make(chan error)
	go func() { closed <- e.Close() }()
	for e.Healthy() == nil { // it has begun once new operations are refused
	}
	if !it.SeekGE([]byte("ta")) || string(it.Key()) != "ta" {
		t.Error("an iterator does not outlive the beginning of Close")
	}
	if err := errors.Join(it.Close(), <-closed); err != nil {
		t.Error(err)
	}
	for name, call := range map[string]func() error{
		"Close":      e.Close,
		"Commit":     func() error { return e.Commit(&put{key: "b"}) },
		"Get":        func() error { _, _, err := e.Get([]byte("ta")); return err },
		"NewIter":    func() error { _, err := e.NewIter(nil, nil); return err },
		"NewBatch":   func() error { _, err := e.NewBatch(); return err },
		"Checkpoint": func() error { _, err := e.Checkpoint(t.Context()); return err },
		"Healthy":    e.Healthy,
		"Ready":      e.Ready,
	} {
		if err := call(); !errors.Is(err, engine.ErrClosed) {
			t.Errorf("%s after Close: %v", name, err)
		}
	}
	if have := rows(t, open(t, p)); have["a"] != 2 {
		t.Errorf("found %v", have)
	}
}
