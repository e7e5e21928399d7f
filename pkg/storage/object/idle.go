// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package object

// runIdler gives memory back that has been idle for between one and two intervals, until the DB is closed: decoded objects
// that nobody read, and events that all watches have passed. Both can be read from the engine again.
func (db *DB) runIdler() {
	tick := db.opts.Clock.NewTicker(db.opts.IdleAfter)
	defer tick.Stop()
	var before uint64 // the revision at the tick before
	for {
		select {
		case <-db.ctx.Done():
			return
		case <-tick.C():
		}
		now := db.Revision()
		for _, t := range db.allTopics() {
			db.dropped.Add(uint64(t.dropIdle(before)))
		}
		before = now
	}
}

// Dropped returns about how many bytes have left memory because they were idle, since the DB was opened.
func (db *DB) Dropped() uint64 { return db.dropped.Load() }

// dropIdle drops the events at or before rev, and the decoded objects that were not read since the last call. Watches that wait
// are woken one call earlier, so that they have read what leaves the ring. It returns about how many bytes that were.
func (t *topic) dropIdle(rev uint64) (dropped int64) {
	t.mu.Lock()
	dropped = t.ring.bytes
	t.ring.trim(rev)
	dropped -= t.ring.bytes
	t.mu.Unlock()
	t.scopes.wakeNarrow()
	if t.cached.Load() == 0 {
		return dropped
	}
	snap, _ := t.current()
	snap.tree.Ascend(func(en *entry) bool {
		if d := en.obj.Load(); d != nil && !d.used.Swap(false) {
			t.forget(en)
			dropped += decodedSize * int64(en.size)
		}
		return true
	})
	return dropped
}
