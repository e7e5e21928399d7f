// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package eventlog

import (
	"cmp"
	"slices"
	"sync/atomic"
	"time"
)

// departures are the deletions that are not yet purged. shared.mu guards all of it except the method none.
type departures struct {
	byStream  map[uint64][]*deletion   // by stream number, oldest first
	byName    map[taskName][]*deletion // the same, by name
	forgotten uint64                   // how many were purged since Open

	// count is the length of byStream. While it is 0, readers need not look up deletions. They then take no
	// lock for each entry, for which a writer might have to wait.
	count atomic.Int64
}

func (l *departures) init() {
	l.byStream, l.byName = map[uint64][]*deletion{}, map[taskName][]*deletion{}
}

// remember adds a deletion for readers.
func (l *departures) remember(d *deletion) {
	name := taskName{d.ns, d.task}
	l.byStream[d.no] = append(l.byStream[d.no], d)
	l.byName[name] = append(l.byName[name], d)
	l.count.Store(int64(len(l.byStream)))
}

// forget undoes remember after a purge.
func (l *departures) forget(d *deletion) {
	l.forgotten++
	without(l.byStream, d.no, d)
	without(l.byName, taskName{d.ns, d.task}, d)
	l.count.Store(int64(len(l.byStream)))
}

// without removes d from the list under key.
func without[K comparable](lists map[K][]*deletion, key K, d *deletion) {
	rest := slices.DeleteFunc(lists[key], func(other *deletion) bool { return other == d })
	if len(rest) == 0 {
		delete(lists, key)
		return
	}
	lists[key] = rest
}

// none reports whether there are no deletions. It may be called without the lock.
func (l *departures) none() bool { return l.count.Load() == 0 }

// goneAt reports whether an event was removed at or before rev.
func (l *departures) goneAt(p *posting, rev uint64) bool {
	for _, d := range l.byStream[p.no] {
		if d.has(p.seq) {
			return d.of(p.seq) <= rev
		}
	}
	return false
}

// oldestAt returns a seq of stream no such that no event below it is left at rev.
func (l *departures) oldestAt(no, rev uint64) int64 {
	oldest := int64(1)
	for _, d := range l.byStream[no] {
		if d.rev <= rev {
			oldest = min(d.last, d.first+int64(rev-d.rev)) + 1
		}
	}
	return oldest
}

// between returns the deletions after revision from and up to to that may match f, by revision.
func (l *departures) between(f *filter, from, to uint64) []*deletion {
	var found []*deletion
	take := func(d *deletion) {
		if d.end() > from && d.rev <= to && f.takesDeletion(d) {
			found = append(found, d)
		}
	}
	switch {
	case f.none:
	case f.ns != "" && f.task != "":
		for _, d := range l.byName[taskName{f.ns, f.task}] {
			take(d)
		}
	default:
		for _, list := range l.byStream {
			for _, d := range list {
				take(d)
			}
		}
	}
	return byRevision(found)
}

// due returns the deletions before old, by revision. A deletion is due with any later one of the same
// stream, even if the clock went backwards, because a purge needs the records in order.
func (l *departures) due(old time.Time) []*deletion {
	var due []*deletion
	for _, list := range l.byStream {
		for n := len(list); n > 0; n-- {
			if !list[n-1].at.After(old) {
				due = append(due, list[:n]...)
				break
			}
		}
	}
	return byRevision(due)
}

func byRevision(list []*deletion) []*deletion {
	slices.SortFunc(list, func(a, b *deletion) int { return cmp.Compare(a.rev, b.rev) })
	return list
}
