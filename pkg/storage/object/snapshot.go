// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package object

import (
	"errors"
	"slices"
	"strings"
	"sync"

	"github.com/google/btree"
)

// snapshot is a topic's live keys for every revision in [from, until).
type snapshot struct {
	tree *btree.BTreeG[*entry]
	from uint64

	until uint64 // 0 while it is the current state; guarded by the topic's lock
	keep  bool   // needed for the next page of a list; guarded by the topic's lock

	mu        sync.Mutex
	remaining map[pageStart]int64 // number of keys from a page's start to the end of the list
}

type pageStart struct{ prefix, start string }

const (
	// keepSnapshots bounds the states kept for further pages of lists. A state that was evicted is made
	// again by rewinding.
	keepSnapshots = 32
	// keepCounts bounds the page counts remembered for one state.
	keepCounts = 1024
)

func newSnapshot(tree *btree.BTreeG[*entry], from, until uint64) *snapshot {
	return &snapshot{tree: tree, from: from, until: until, remaining: map[pageStart]int64{}}
}

// current returns a snapshot of the newest state and its revision.
func (t *topic) current() (*snapshot, uint64) {
	t.mu.RLock()
	s, rev := t.newest, t.db.engine.Revision()
	t.mu.RUnlock()
	if s != nil {
		return s, rev
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.currentLocked(), t.db.engine.Revision()
}

func (t *topic) currentLocked() *snapshot {
	if t.newest == nil {
		t.newest = newSnapshot(t.tree.Clone(), t.lastRev, 0)
	}
	return t.newest
}

// closeSnapshot ends the newest snapshot before a write of rev. The caller holds t.mu.
func (t *topic) closeSnapshot(rev uint64) {
	s := t.newest
	if s == nil {
		return
	}
	t.newest = nil
	s.until = rev
	if s.keep {
		t.keepLocked(s)
	}
}

// retain keeps s for the next page of a list.
func (t *topic) retain(s *snapshot) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if s.keep {
		return
	}
	s.keep = true
	if s.until != 0 {
		t.keepLocked(s)
	}
}

func (t *topic) keepLocked(s *snapshot) {
	if len(t.kept) >= keepSnapshots {
		t.kept = append([]*snapshot(nil), t.kept[1:]...)
	}
	t.kept = append(t.kept, s)
}

// at returns the state at rev, which must not be in the future. It returns ErrCompacted if history needed
// for that is gone.
func (t *topic) at(rev uint64) (*snapshot, error) {
	t.mu.Lock()
	if rev >= t.lastRev {
		defer t.mu.Unlock()
		return t.currentLocked(), nil
	}
	for _, s := range t.kept {
		if s.from <= rev && rev < s.until {
			t.mu.Unlock()
			return s, nil
		}
	}
	tree := t.tree.Clone()
	events := t.ring.after(rev)
	base := t.ring.before
	t.mu.Unlock()
	s, err := t.rewind(tree, events, base, rev)
	if err != nil {
		return nil, err
	}
	t.retain(s)
	return s, nil
}

// rewind undoes every change after rev, newest first: first the given events, which are in memory, then the
// changes at or before base from the changelog. Its cost depends on the number of changes since rev, not on
// the number of keys.
func (t *topic) rewind(tree *btree.BTreeG[*entry], events []*event, base, rev uint64) (*snapshot, error) {
	s := newSnapshot(tree, rev, rev+1)
	for _, event := range slices.Backward(events) {
		if ev := event; ev.old != nil {
			tree.ReplaceOrInsert(ev.old)
		} else {
			tree.Delete(ev.cur)
		}
		s.until = event.rev
	}
	if base > rev {
		until, err := t.rewindFromDisk(tree, base, rev)
		if err != nil {
			return nil, err
		}
		s.until = max(until, rev+1)
	}
	if rev < t.db.compacted.Load() {
		return nil, ErrCompacted
	}
	return s, nil
}

// rewindFromDisk returns the revision of the oldest change that it undid.
func (t *topic) rewindFromDisk(tree *btree.BTreeG[*entry], base, rev uint64) (oldest uint64, err error) {
	it, err := t.db.engine.NewIter(changeKey(rev+1), changeKey(base+1))
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, it.Close()) }()
	for ok := it.Last(); ok; ok = it.Prev() {
		c, err := parseChange(it.Key(), it.Value())
		if err != nil {
			return 0, err
		}
		if !strings.HasPrefix(c.key, t.prefix) {
			continue
		}
		if c.prev != 0 {
			tree.ReplaceOrInsert(&entry{key: c.key, rev: c.prev})
		} else {
			tree.Delete(&entry{key: c.key})
		}
		oldest = c.rev
	}
	return oldest, it.Error()
}

// dropSnapshots drops states that are refused after compaction to rev.
func (t *topic) dropSnapshots(rev uint64) {
	t.mu.Lock()
	defer t.mu.Unlock()
	keep := t.kept[:0:0]
	for _, s := range t.kept {
		if s.until > rev {
			keep = append(keep, s)
		}
	}
	t.kept = keep
}

// count returns how many keys the snapshot has in [start, end).
func (s *snapshot) count(t *topic, prefix, start, end string) int64 {
	if start == prefix && prefix == t.prefix {
		return int64(s.tree.Len())
	}
	at := pageStart{prefix, start}
	s.mu.Lock()
	n, ok := s.remaining[at]
	s.mu.Unlock()
	if ok {
		return n
	}
	s.tree.AscendRange(&entry{key: start}, &entry{key: end}, func(*entry) bool { n++; return true })
	s.remember(at, n)
	return n
}

// remember notes how many keys follow a page, so that the next page need not count them. Counting again for
// each page would make a walk quadratic.
func (s *snapshot) remember(at pageStart, n int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.remaining) >= keepCounts {
		clear(s.remaining)
	}
	s.remaining[at] = n
}
