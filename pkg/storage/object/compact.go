// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package object

import (
	"encoding/binary"
	"errors"
	"fmt"
	"time"

	"github.com/platform-ai/platform/pkg/storage/engine"
)

const (
	// marksPerHistory is how many marks divide the kept history, by age and by bytes. The history that is
	// kept exceeds its bound by at most 1/marksPerHistory.
	marksPerHistory = 16
	// compactBatch is the size in bytes at which a batch of deletes ends. It is small enough not to delay a commit group.
	compactBatch = 256 << 10
)

// mark records the revision at a time, and how much history had been written by then.
type mark struct {
	at      time.Time
	rev     uint64
	history int64
}

// runCompactor compacts history by age and by bytes until the DB is closed.
func (db *DB) runCompactor() {
	interval := db.opts.HistoryAge / marksPerHistory
	tick := db.opts.Clock.NewTicker(interval)
	defer tick.Stop()
	compact := func(rev uint64) {
		if err := db.Compact(rev); err != nil && !errors.Is(err, engine.ErrClosed) && !errors.Is(err, ErrClosed) {
			db.log.Error(err, "Compaction failed, will retry", "revision", rev)
		}
	}
	if db.compacted.Load() > 0 {
		compact(db.compacted.Load()) // finish a compaction that was interrupted
	}
	marks := []mark{db.mark()}
	for {
		select {
		case <-db.ctx.Done():
			return
		case <-tick.C():
		case <-db.marked:
		}
		now := db.mark()
		marks = append(marks, now)
		last := -1
		for i, m := range marks {
			if now.at.Sub(m.at) >= db.opts.HistoryAge || now.history-m.history >= db.opts.HistoryBytes {
				last = i
			}
		}
		if last >= 0 {
			compact(marks[last].rev)
			marks = append([]mark(nil), marks[last+1:]...)
		}
	}
}

func (db *DB) mark() mark {
	m := mark{rev: db.engine.Revision(), history: db.history.Load()}
	m.at = db.opts.Clock.Now() // set last, so that nothing before the mark is younger than its time
	return m
}

// wrote adds a published write to the history size.
func (db *DB) wrote(w *write) {
	history := db.history.Add(int64(len(w.data) + len(w.key)))
	if next := db.nextMark.Load(); history >= next {
		db.nextMark.Store(history + db.opts.HistoryBytes/marksPerHistory)
		select {
		case db.marked <- struct{}{}:
		default:
		}
	}
	if w.expiry != 0 {
		lower(&db.nextExpiry, w.expiry)
	}
	w.topic.metrics.wrote(w.op)
}

// CompactRevision returns the highest compacted revision, 0 if none.
func (db *DB) CompactRevision() uint64 { return db.compacted.Load() }

// Compact refuses reads of history before rev from now on, and removes that history from disk: every
// version that was replaced or deleted at or before rev, and the changelog up to rev. Its cost depends on
// the number of those changes. The state at rev can still be listed and watched from. Compact itself takes
// no revision.
func (db *DB) Compact(rev uint64) error {
	db.compacting.Lock()
	defer db.compacting.Unlock()
	if now := db.engine.Revision(); rev > now {
		return fmt.Errorf("cannot compact to revision %d, the store is at %d", rev, now)
	}
	start := db.opts.Clock.Now()
	if rev > db.compacted.Load() {
		// Refuse reads first, in memory and on disk. Otherwise readers that come from now on, or
		// after a crash in between, would take removed versions for ones that were never written.
		db.compacted.Store(rev)
		if err := db.writeFloor(rev); err != nil {
			return fmt.Errorf("compact to revision %d: %w", rev, err)
		}
		for _, t := range db.allTopics() {
			t.compact(rev)
		}
	}
	n, err := db.dropHistory(db.compacted.Load())
	if err != nil {
		return fmt.Errorf("compact to revision %d: %w", rev, err)
	}
	db.metrics.compacted.Add(float64(n))
	db.log.V(2).Info("Compacted history", "revision", rev, "changes", n, "duration", db.opts.Clock.Since(start))
	return nil
}

// compact drops from memory what only refused readers could request.
func (t *topic) compact(rev uint64) {
	t.dropSnapshots(rev)
	t.mu.Lock()
	t.ring.trim(rev)
	t.mu.Unlock()
}

func (db *DB) writeFloor(rev uint64) error {
	b, err := db.engine.NewBatch()
	if err != nil {
		return err
	}
	if err := b.Set(floorKey, binary.BigEndian.AppendUint64(nil, rev)); err != nil {
		b.Discard()
		return err
	}
	return db.engine.Apply(b, engine.Sync)
}

// dropHistory walks the changelog from its beginning, so it also finishes an interrupted compaction.
// Changelog records are removed after the versions that they refer to.
func (db *DB) dropHistory(rev uint64) (changes int, err error) {
	it, err := db.engine.NewIter(changeKey(0), changeKey(rev+1))
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, it.Close()) }()
	b, err := db.engine.NewBatch()
	if err != nil {
		return 0, err
	}
	defer func() { b.Discard() }()
	var scratch []byte
	for ok := it.First(); ok; ok = it.Next() {
		c, err := parseChange(it.Key(), it.Value())
		if err != nil {
			return changes, err
		}
		changes++
		if c.prev == 0 {
			continue
		}
		scratch = versionKey(scratch[:0], c.key, c.prev)
		if err := b.Delete(scratch); err != nil {
			return changes, err
		}
		if b.Len() < compactBatch {
			continue
		}
		if err := db.engine.Apply(b, engine.NoSync); err != nil {
			return changes, err
		}
		if err := db.ctx.Err(); err != nil {
			return changes, ErrClosed
		}
		if b, err = db.engine.NewBatch(); err != nil {
			return changes, err
		}
	}
	if err := it.Error(); err != nil || changes == 0 {
		return 0, err
	}
	if err := b.DeleteRange(changeKey(0), changeKey(rev+1)); err != nil {
		return changes, err
	}
	return changes, db.engine.Apply(b, engine.NoSync)
}
