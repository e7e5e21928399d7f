// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package local

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/go-logr/logr"
)

const (
	reachedFormat = "platform-store-reached/1"
	// reachedPause is the least time between two syncs of what was reached.
	reachedPause = 100 * time.Millisecond
)

// reachedState is how far the files that the store appends to are known to be durable.
type reachedState struct {
	// Generation counts the writes; the slot with the higher one is valid.
	Generation uint64 `json:"generation"`
	// Log is the number of the write-ahead log that was synced last, and LogBytes how much of it was.
	Log      uint64 `json:"log"`
	LogBytes int64  `json:"logBytes"`
	// Manifest is the number of the manifest that was synced last, and ManifestBytes how much of it was.
	Manifest      uint64 `json:"manifest"`
	ManifestBytes int64  `json:"manifestBytes"`
	// Revision was published.
	Revision uint64 `json:"revision"`
}

// reached is the part of a mark that is written in each commit: after the log was synced, and before anyone learns of it. So a store
// whose log has become shorter than that has lost what was acknowledged.
//
// The write is not waited for, except by the kernel's cache, which the end of the process leaves intact: after that, the record is exact.
// It is synced in the background, within reachedPause. After a power failure it may therefore lack the last moments, and what is
// lost of them cannot be told from what was never acknowledged. A sync in each commit would take as long as that of the log.
//
// It has two slots after those of the mark. A record is shorter than a sector.
type reached struct {
	file     vfs.File
	log      logr.Logger
	revision func() uint64

	mu       sync.Mutex
	state    reachedState
	settled  bool // the state is of the store that is open
	failed   bool // the last write failed
	dirty    chan struct{}
	syncing  sync.WaitGroup
	stopSync context.CancelFunc
}

// note changes the state and writes it. A write that fails is repeated by the next one, and never fails a commit: the record only
// lags, which hides losses and makes up none.
func (r *reached) note(change func(*reachedState)) {
	r.mu.Lock()
	defer r.mu.Unlock()
	change(&r.state)
	if !r.settled {
		return
	}
	r.state.Revision = max(r.state.Revision, r.revision())
	err := r.write()
	if failed := err != nil; failed != r.failed {
		if r.failed = failed; failed {
			r.log.Error(err, "It cannot be recorded how far the store was written; damage to its newest files may go unnoticed until it can")
		}
	}
	select {
	case r.dirty <- struct{}{}:
	default:
	}
}

// write writes the state into the slot of the older one. The caller holds mu.
func (r *reached) write() error {
	r.state.Generation++
	line, err := encodeSlot(reachedFormat, &r.state)
	if err == nil {
		_, err = r.file.WriteAt(line, int64(2+r.state.Generation%2)*markSlot)
	}
	return err
}

// settle makes the state that of the open store, whose manifest has that size.
func (r *reached) settle(log, manifest uint64, size int64) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.state.Log != log { // not synced yet
		r.state.Log, r.state.LogBytes = log, 0
	}
	if r.state.Manifest != manifest { // not written since the store was opened
		r.state.Manifest, r.state.ManifestBytes = manifest, size
	}
	r.state.Revision, r.settled = r.revision(), true
	// The file gets its size, so that later syncs write no metadata.
	if _, err := r.file.WriteAt([]byte("\n"), 4*markSlot-1); err != nil {
		return err
	}
	for range 2 {
		if err := r.write(); err != nil {
			return err
		}
	}
	return r.file.SyncData()
}

// run syncs what was written, until stop.
func (r *reached) run(ctx context.Context) {
	ctx, r.stopSync = context.WithCancel(ctx)
	r.syncing.Go(func() {
		for {
			select {
			case <-ctx.Done():
				return
			case <-r.dirty:
			}
			_ = r.file.SyncData() // a sync that fails is repeated after the next write
			if !sleep(ctx, reachedPause) {
				return
			}
		}
	})
}

func (r *reached) stop() {
	if r.stopSync != nil {
		r.stopSync()
	}
	r.syncing.Wait()
}

// appended is a file that the store appends to. It reports how many of its bytes are durable.
type appended struct {
	vfs.File
	written atomic.Int64
	durable func(bytes int64)
}

func (f *appended) Write(p []byte) (int, error) {
	n, err := f.File.Write(p)
	f.written.Add(int64(n))
	return n, err
}

func (f *appended) Sync() error { return f.synced(f.File.Sync) }

func (f *appended) SyncData() error { return f.synced(f.File.SyncData) }

func (f *appended) synced(op func() error) error {
	bytes := f.written.Load()
	if err := op(); err != nil {
		return err
	}
	f.durable(bytes)
	return nil
}
