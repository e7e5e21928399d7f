// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package local

import (
	"errors"
	"fmt"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/platform-ai/platform/pkg/storage/engine"
)

// held is a put whose Sequence waits, so that a queue forms after it.
type held struct {
	put
	until chan struct{}
}

func (h *held) Sequence(b engine.Batch) error {
	<-h.until
	return h.put.Sequence(b)
}

// overlapping counts calls of Overlap.
type overlapping struct {
	put
	calls atomic.Int32
}

func (o *overlapping) Overlap() { o.calls.Add(1) }

func counter(t *testing.T, r prometheus.Gatherer, name string) float64 {
	t.Helper()
	families, err := r.Gather()
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range families {
		if f.GetName() == name {
			return f.GetMetric()[0].GetCounter().GetValue()
		}
	}
	t.Fatalf("no metric %s", name)
	return 0
}

// TestGroupsShareASyncAndAreBounded queues writers after a blocked one. They must become durable together,
// in groups of limited size, in the order of their arrival.
func TestGroupsShareASyncAndAreBounded(t *testing.T) {
	for _, c := range []struct {
		groupBytes int
		groups     float64 // besides the one that is held
	}{{1 << 20, 1}, {16 << 10, 4}} {
		r := prometheus.NewRegistry()
		e := open(t, Options{GroupBytes: c.groupBytes, Registerer: r})
		const writers = 60 // of 1 KiB each
		first := &held{put: put{key: "first"}, until: make(chan struct{})}
		var wg sync.WaitGroup
		commit := func(txn engine.Txn) {
			wg.Go(func() {
				if err := e.Commit(txn); err != nil {
					t.Error(err)
				}
			})
		}
		queued := func(n int) {
			for {
				e.mu.Lock()
				have, leading := len(e.queue), e.leading
				e.mu.Unlock()
				if leading && have == n {
					return
				}
				runtime.Gosched()
			}
		}
		commit(first)
		queued(0)
		var txns []*overlapping
		for i := range writers {
			txn := &overlapping{put: put{key: fmt.Sprint(i), value: string(make([]byte, 1000))}}
			txns = append(txns, txn)
			commit(txn)
			queued(i + 1)
		}
		close(first.until)
		wg.Wait()
		for i, txn := range txns {
			if want := uint64(3 + i); txn.rev != want {
				t.Errorf("writer %d got revision %d, want %d", i, txn.rev, want)
			}
			if n := txn.calls.Load(); n != 1 {
				t.Errorf("writer %d overlapped %d times", i, n)
			}
		}
		if got := counter(t, r, "platform_store_commit_groups_total"); got != 1+c.groups {
			t.Errorf("groups of %d bytes: %v, want %v", c.groupBytes, got, 1+c.groups)
		}
		shut(t, e)
	}
}

// careless breaks the contract of Sequence: it writes and then refuses.
type careless struct{}

func (careless) Sequence(b engine.Batch) error {
	return errors.Join(b.Set([]byte("tcareless"), nil), errors.New("changed my mind"))
}

func (careless) Publish() {}

// TestTxnThatWritesAndRefuses checks that such a Txn stops the store: its writes cannot be removed from the
// batch that it shares with others.
func TestTxnThatWritesAndRefuses(t *testing.T) {
	var fatal atomic.Pointer[error]
	e := open(t, Options{OnFatal: func(err error) { fatal.Store(&err) }})
	if err := e.Commit(careless{}); !errors.Is(err, engine.ErrFailed) {
		t.Errorf("commit: %v", err)
	}
	if fatal.Load() == nil {
		t.Error("OnFatal was not called")
	}
	if err := e.Close(); !errors.Is(err, engine.ErrFailed) {
		t.Errorf("close: %v", err)
	}
}
