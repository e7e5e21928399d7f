// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

// Package enginetest tests that an engine keeps its contract, which is the doc comment of package engine.
// It does not depend on how an engine is built: an engine's own tests supply a Place. A Place that is a Damager or a
// Hanger too lets the kit test what an engine does then. For a Place that is not, those tests are skipped.
package enginetest

import (
	"encoding/binary"
	"errors"
	"sync"
	"testing"
	"time"

	"github.com/platform-ai/platform/pkg/storage/engine"
)

// Place is the location of a store. It outlives the engines that open the store.
type Place interface {
	// Open opens the store, creating it if there is none. fatal is called if the engine fails for good.
	Open(fatal func(error)) (engine.Engine, error)
	// Crash returns the place as another process would find it if this one died now, at any point of any
	// write. Everything durable is present. Different seeds may keep different parts of the rest.
	Crash(seed uint64) Place
	// Fail makes every write fail from now on.
	Fail()
	// Leave sets the free space so that writes permitted by room are accepted, and no others. Engines that
	// are open notice at once.
	Leave(room Room)
	// Restore returns a new place that holds the content of a checkpoint.
	Restore(c engine.Checkpoint) (Place, error)
}

// Damager is a Place on which stored data can be changed.
type Damager interface {
	Place
	// Damage changes a part of what is stored so that its checksums do not match, while no engine is open. At least one of
	// the 256 values of 4 KiB that the kit has written can then not be read, and at least one can. The store can be opened.
	Damage() error
}

// Hanger is a Place whose storage can stop answering.
type Hanger interface {
	Place
	// Hang makes the storage answer nothing until resume is called, which the kit does once.
	Hang() (resume func())
	// Pass lets d pass on the clock of the engines that are open.
	Pass(d time.Duration)
}

// Room is how much a store may still grow.
type Room int

// How much room there is.
const (
	Plenty     Room = iota
	ForUpkeep       // for engine.Upkeep, engine.Free and engine.Nothing
	ForFree         // for engine.Free and engine.Nothing
	ForNothing      // for engine.Nothing
)

// Run runs all tests of the contract. empty returns a new place.
func Run(t *testing.T, empty func(t *testing.T) Place) {
	for _, c := range []struct {
		name string
		test func(t *testing.T, p Place)
	}{
		{"Order", testOrder},
		{"Groups", testGroups},
		{"Revisions", testRevisions},
		{"Refused", testRefused},
		{"Nothing", testNothing},
		{"Overlap", testOverlap},
		{"Batches", testBatches},
		{"Iterators", testIterators},
		{"ChangeFeed", testChangeFeed},
		{"Crash", testCrash},
		{"Failure", testFailure},
		{"Room", testRoom},
		{"Damage", testDamage},
		{"Ready", testReady},
		{"Checkpoint", testCheckpoint},
		{"OneWriter", testOneWriter},
		{"Close", testClose},
	} {
		t.Run(c.name, func(t *testing.T) { c.test(t, empty(t)) })
	}
}

// put is a Txn that takes n revisions and writes a key whose value is the last of them.
type put struct {
	key     string
	n       int // 1 if it is not set
	size    int // of a second value, to make the batch longer
	need    engine.Need
	refuse  error
	before  func() // Sequence calls it first
	publish func(rev uint64)

	rev uint64
}

func (p *put) Need() engine.Need { return p.need }

func (p *put) Sequence(b engine.Batch) error {
	if p.before != nil {
		p.before()
	}
	for range max(p.n, 1) {
		p.rev = b.Next()
	}
	if p.refuse != nil {
		return p.refuse
	}
	err := b.Set([]byte("t"+p.key), binary.BigEndian.AppendUint64(nil, p.rev))
	if p.size > 0 {
		err = errors.Join(err, b.Set([]byte("u"+p.key), make([]byte, p.size)))
	}
	return err
}

func (p *put) Publish() {
	if p.publish != nil {
		p.publish(p.rev)
	}
}

// nothing is a Txn that writes nothing.
type nothing struct {
	refuse    error
	published int
}

func (*nothing) Need() engine.Need { return engine.Nothing }

func (n *nothing) Sequence(engine.Batch) error { return n.refuse }

func (n *nothing) Publish() { n.published++ }

// open opens the store of a place and closes it when the test ends.
func open(t *testing.T, p Place) engine.Engine {
	t.Helper()
	e, err := p.Open(func(err error) { t.Errorf("fatal: %v", err) })
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := e.Close(); err != nil && !errors.Is(err, engine.ErrClosed) {
			t.Errorf("close: %v", err)
		}
	})
	return e
}

func commit(t *testing.T, e engine.Engine, p *put) uint64 {
	t.Helper()
	if err := e.Commit(p); err != nil {
		t.Fatalf("commit of %s: %v", p.key, err)
	}
	return p.rev
}

func shut(t *testing.T, e engine.Engine) {
	t.Helper()
	if err := e.Close(); err != nil {
		t.Errorf("close: %v", err)
	}
}

// await waits until something is so.
func await(t *testing.T, what string, is func() bool) {
	t.Helper()
	// The bound only ends a test that hangs. Tests that are no part of this package have kit.Await for this.
	for deadline := time.Now().Add(5 * time.Minute); !is(); time.Sleep(time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("waited in vain: %s", what)
		}
	}
}

// rows returns the keys that puts wrote, with their revisions.
func rows(t *testing.T, e engine.Reader) map[string]uint64 {
	t.Helper()
	it, err := e.NewIter([]byte("t"), []byte("u"))
	if err != nil {
		t.Fatal(err)
	}
	found := map[string]uint64{}
	for ok := it.First(); ok; ok = it.Next() {
		found[string(it.Key()[1:])] = binary.BigEndian.Uint64(it.Value())
	}
	if err := it.Close(); err != nil {
		t.Fatal(err)
	}
	return found
}

// feed keeps what was published, in order.
type feed struct {
	mu   sync.Mutex
	revs []uint64
}

func (f *feed) add(rev uint64) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.revs = append(f.revs, rev)
}

func (f *feed) list() []uint64 {
	f.mu.Lock()
	defer f.mu.Unlock()
	return append([]uint64(nil), f.revs...)
}
