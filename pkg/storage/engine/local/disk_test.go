// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package local_test

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"maps"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"

	"github.com/platform-ai/platform/pkg/storage/engine"
	"github.com/platform-ai/platform/pkg/storage/engine/local"
	"github.com/platform-ai/platform/pkg/storage/engine/local/localtest"
	"github.com/platform-ai/platform/test/kit"
)

// ledger remembers what a store promised: which writes were published and acknowledged. A store found after
// a crash is checked against it.
type ledger struct {
	mu        sync.Mutex
	published map[string]uint64 // key -> revision
	acked     map[string]uint64
}

func newLedger() *ledger {
	return &ledger{published: map[string]uint64{}, acked: map[string]uint64{}}
}

type entry struct {
	l   *ledger
	key string
	rev uint64
}

func (w *entry) Sequence(b engine.Batch) error {
	w.rev = b.Next()
	return b.Set([]byte("t"+w.key), binary.BigEndian.AppendUint64(nil, w.rev))
}

func (w *entry) Publish() {
	w.l.mu.Lock()
	defer w.l.mu.Unlock()
	w.l.published[w.key] = w.rev
}

func (l *ledger) write(e *local.Engine, key string) error {
	w := &entry{l: l, key: key}
	err := e.Commit(w)
	if err == nil {
		l.mu.Lock()
		l.acked[key] = w.rev
		l.mu.Unlock()
	}
	return err
}

// copies returns what was promised so far.
func (l *ledger) copies() (published, acked map[string]uint64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	clone := func(m map[string]uint64) map[string]uint64 {
		c := make(map[string]uint64, len(m))
		maps.Copy(c, m)
		return c
	}
	return clone(l.published), clone(l.acked)
}

func openOn(t *testing.T, d *localtest.Disk, onFatal func(error)) *local.Engine {
	t.Helper()
	return openWith(t, d, "", onFatal)
}

func openWith(t *testing.T, d *localtest.Disk, mark string, onFatal func(error)) *local.Engine {
	t.Helper()
	e, err := local.Open(context.Background(), local.Options{Dir: localtest.Dir, FS: d.FS(), OnFatal: onFatal, MemTableBytes: 64 << 10, Mark: mark})
	if err != nil {
		t.Fatal(err)
	}
	return e
}

// TestCrash cuts the power at random points under load. Every published write, and so every acknowledged
// one, must be found again. No revision may be lost or reused.
func TestCrash(t *testing.T) {
	for _, unsynced := range []int{0, 30, 70} {
		t.Run(fmt.Sprintf("unsynced=%d", unsynced), func(t *testing.T) {
			disk, l := localtest.NewDisk(), newLedger()
			for seed := range uint64(6) {
				disk = crashUnderLoad(t, disk, l, unsynced, seed)
			}
		})
	}
}

func crashUnderLoad(t *testing.T, disk *localtest.Disk, l *ledger, unsynced int, seed uint64) *localtest.Disk {
	e := openWith(t, disk, markFile, func(err error) { t.Errorf("fatal: %v", err) })
	var (
		wg      sync.WaitGroup
		stop    atomic.Bool
		written = make(chan struct{}, 1)
	)
	for w := range 8 {
		wg.Go(func() {
			for i := 0; !stop.Load(); i++ {
				if err := l.write(e, fmt.Sprintf("%d/%d/%d", seed, w, i)); err != nil {
					t.Error(err)
					return
				}
				if i == 20*int(seed+1) {
					select {
					case written <- struct{}{}:
					default:
					}
				}
			}
		})
	}
	<-written
	published, acked := l.copies() // before the crash: all of this was promised
	crashed := disk.Crash(unsynced, seed)
	stop.Store(true)
	wg.Wait()
	if err := e.Close(); err != nil {
		t.Error(err)
	}

	found := openWith(t, crashed, markFile, func(err error) { t.Errorf("fatal: %v", err) })
	defer func() {
		if err := found.Close(); err != nil {
			t.Error(err)
		}
	}()
	last := uint64(1)
	for key, rev := range published {
		v, ok, err := found.Get([]byte("t" + key))
		if err != nil || !ok || binary.BigEndian.Uint64(v) != rev {
			t.Fatalf("published %s at %d: found %v %x %v", key, rev, ok, v, err)
		}
		last = max(last, rev)
	}
	for key, rev := range acked {
		if published[key] != rev {
			t.Fatalf("acknowledged %s at %d without publishing it", key, rev)
		}
	}
	if got := found.Revision(); got < last {
		t.Fatalf("revision %d after the crash, %d was published", got, last)
	}
	forget(t, l, found, published)
	return crashed
}

// forget reduces the ledger to what the crashed store holds, from which the next round continues.
func forget(t *testing.T, l *ledger, e *local.Engine, promised map[string]uint64) {
	t.Helper()
	l.mu.Lock()
	defer l.mu.Unlock()
	for key := range l.published {
		if _, ok := promised[key]; !ok {
			delete(l.published, key)
			delete(l.acked, key)
		}
	}
	it, err := e.NewIter([]byte("t"), []byte("u"))
	if err != nil {
		t.Fatal(err)
	}
	defer it.Close()
	seen := map[uint64]string{}
	for ok := it.First(); ok; ok = it.Next() {
		rev := binary.BigEndian.Uint64(it.Value())
		if other := seen[rev]; other != "" {
			t.Errorf("%s and %s have the same revision %d", other, it.Key(), rev)
		}
		if rev > e.Revision() {
			t.Errorf("%s at %d, the store is at %d", it.Key(), rev, e.Revision())
		}
		seen[rev] = string(it.Key())
	}
}

// TestDiskErrorIsNeverAcknowledged fails the log at every kind of operation, one
// after the other, under load.
func TestDiskErrorIsNeverAcknowledged(t *testing.T) {
	for _, c := range []struct {
		name string
		when func(localtest.Op) bool
		err  error
	}{
		{"write", func(o localtest.Op) bool { return o.Log() && o.Kind == localtest.Write }, localtest.ErrInjected},
		{"sync", func(o localtest.Op) bool { return o.Log() && o.Kind == localtest.Sync }, localtest.ErrInjected},
		{"disk full", func(o localtest.Op) bool { return o.Log() && o.Kind == localtest.Write }, syscall.ENOSPC},
	} {
		t.Run(c.name, func(t *testing.T) {
			disk, l := localtest.NewDisk(), newLedger()
			fatal := make(chan error, 1)
			e := openOn(t, disk, func(err error) { fatal <- err }) // a second call would block
			if err := l.write(e, "before"); err != nil {
				t.Fatal(err)
			}
			disk.Fail(func(o localtest.Op) error {
				if c.when(o) {
					return c.err
				}
				return nil
			})
			var wg sync.WaitGroup
			for w := range 8 {
				wg.Go(func() {
					for i := range 3 {
						if err := l.write(e, fmt.Sprintf("%d/%d", w, i)); !errors.Is(err, engine.ErrFailed) {
							t.Errorf("write on a failed disk: %v", err)
						}
					}
				})
			}
			wg.Wait()
			if err := await(t, fatal); !errors.Is(err, engine.ErrFailed) || !strings.Contains(err.Error(), c.err.Error()) {
				t.Errorf("OnFatal got %v", err)
			}
			if err := e.Healthy(); !errors.Is(err, engine.ErrFailed) {
				t.Errorf("health %v", err)
			}
			disk.Fail(nil) // the disk recovers, but what it lost stays lost
			if err := l.write(e, "after"); !errors.Is(err, engine.ErrFailed) {
				t.Errorf("write after the disk recovered: %v", err)
			}
			if b, err := e.NewBatch(); err != nil || !errors.Is(e.Apply(b, engine.Sync), engine.ErrFailed) {
				t.Errorf("background batch: %v", err)
			}
			if _, err := e.Checkpoint(t.Context()); !errors.Is(err, engine.ErrFailed) {
				t.Errorf("checkpoint: %v", err)
			}
			published, _ := l.copies()
			if len(published) != 1 || e.Revision() != 2 {
				t.Errorf("published %v, revision %d", published, e.Revision())
			}
			if err := e.Close(); !errors.Is(err, engine.ErrFailed) {
				t.Errorf("close: %v", err)
			}
			found := openOn(t, disk.Crash(0, 0), nil)
			if _, ok, err := found.Get([]byte("tbefore")); !ok || err != nil {
				t.Errorf("the write before is lost: %v", err)
			}
			if err := found.Close(); err != nil {
				t.Error(err)
			}
		})
	}
}

// TestBackgroundErrorIsUnhealthy fails flushes, as a broken disk does, and lets them
// succeed again.
func TestBackgroundErrorIsUnhealthy(t *testing.T) {
	disk, l := localtest.NewDisk(), newLedger()
	e := openOn(t, disk, func(err error) { t.Errorf("fatal: %v", err) })
	defer e.Close()
	var failed atomic.Bool
	disk.Fail(func(o localtest.Op) error {
		if strings.HasSuffix(o.Path, ".sst") {
			failed.Store(true)
			return syscall.EIO
		}
		return nil
	})
	i := 0
	grow := func(until func() bool) {
		for ; !until(); i++ {
			if err := l.write(e, fmt.Sprint(i)); err != nil {
				t.Fatal(err)
			}
		}
	}
	grow(failed.Load) // and no further: writes stall once several memtables wait to be flushed
	kit.Await(t, "the store is unhealthy", func() bool { return e.Healthy() != nil })
	if err := e.Healthy(); !errors.Is(err, syscall.EIO) {
		t.Errorf("health %v", err)
	}
	disk.Fail(nil)
	kit.Await(t, "the store is healthy again", func() bool { return e.Healthy() == nil })
}

// TestOpenFailsOnDiskError leaves a directory that a later Open can use.
func TestOpenFailsOnDiskError(t *testing.T) {
	disk := localtest.NewDisk()
	disk.Fail(func(o localtest.Op) error {
		if o.Log() {
			return localtest.ErrInjected
		}
		return nil
	})
	if _, err := local.Open(context.Background(), local.Options{Dir: localtest.Dir, FS: disk.FS()}); err == nil {
		t.Fatal("opened on a failing disk")
	}
	disk.Fail(nil)
	e := openOn(t, disk, nil)
	if err := e.Close(); err != nil {
		t.Error(err)
	}
}

func await(t *testing.T, ch <-chan error) error {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), kit.Patience)
	defer cancel()
	select {
	case err := <-ch:
		return err
	case <-ctx.Done():
		t.Fatal("it did not happen")
		return nil
	}
}
