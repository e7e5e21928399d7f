// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package object

// runIdler gives memory back that has been idle for between one and two intervals, until the DB is closed: decoded objects
// that nobody read, and events that all watches have passed. Both can be read from the engine again.
func runIdler(db *DB) {
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
			t.dropIdle(before)
		}
		before = now
	}
}

// dropIdle drops the events at or before rev, and the decoded objects that were not read since the last call. Watches that wait
// are woken one call earlier, so that they have read what leaves the ring.
func (t *topic) dropIdle(rev uint64) {
	t.mu.Lock()
	t.ring.trim(rev)
	t.mu.Unlock()
	t.scopes.wakeNarrow()
	if t.cached.Load() == 0 {
		return
	}
	snap, _ := t.current()
	snap.tree.Ascend(func(en *entry) bool {
		if d := en.obj.Load(); d != nil && !d.used.Swap(false) {
			t.forget(en)
		}
		return true
	})
}
