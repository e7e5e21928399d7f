// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package object

import (
	"errors"
	"fmt"
	"sort"
	"strings"
)

// ring is a topic's recent events, oldest first. The topic's lock guards it.
type ring struct {
	maxEvents int
	maxBytes  int64

	events []*event // events[i] has position first+i
	first  uint64
	bytes  int64
	before uint64 // every event after this revision is in the ring
}

// eventOverhead is how many bytes of memory an event takes besides its stored bytes. The stored bytes count
// three times: once as they are, and twice for the object decoded from them.
const eventOverhead = 384

func (ev *event) cost() int64 {
	return eventOverhead + int64(len(ev.cur.key)) + 3*int64(len(ev.data))
}

func (r *ring) push(ev *event) {
	r.events = append(r.events, ev)
	r.bytes += ev.cost()
	for len(r.events) > 1 && (len(r.events) > r.maxEvents || r.bytes > r.maxBytes) {
		r.drop()
	}
}

// trim drops events at or before rev.
func (r *ring) trim(rev uint64) {
	for len(r.events) > 0 && r.events[0].rev <= rev {
		r.drop()
	}
}

func (r *ring) drop() {
	ev := r.events[0]
	r.before = ev.rev
	r.bytes -= ev.cost()
	r.first++
	r.events[0] = nil
	r.events = r.events[1:]
}

// after returns a copy of the events after rev that are in the ring.
func (r *ring) after(rev uint64) []*event {
	return append([]*event(nil), r.events[r.search(rev):]...)
}

// search returns the index of the first event after rev.
func (r *ring) search(rev uint64) int {
	return sort.Search(len(r.events), func(i int) bool { return r.events[i].rev > rev })
}

// seek returns the position of the first event after rev. ok is false if the ring no longer holds all
// events after rev.
func (t *topic) seek(rev uint64) (pos uint64, ok bool) {
	t.mu.RLock()
	defer t.mu.RUnlock()
	return t.ring.first + uint64(t.ring.search(rev)), rev >= t.ring.before
}

const readAtOnce = 256 // events that a watch takes under one read lock

// readRing appends events from pos on. ok is false if the event at pos has left the ring.
func (t *topic) readRing(pos uint64, into []*event) (events []*event, next uint64, ok bool) {
	t.mu.RLock()
	defer t.mu.RUnlock()
	r := &t.ring
	if pos < r.first {
		return into, pos, false
	}
	i := int(pos - r.first)
	n := min(len(r.events)-i, readAtOnce)
	return append(into, r.events[i:i+n]...), pos + uint64(n), true
}

const replayAtOnce = 512 // changelog records that a watch reads with one iterator

// replay reads events after rev from the changelog, and returns the revision up to which it read. It
// returns ErrCompacted if some of them are gone.
func (t *topic) replay(rev uint64) (events []*event, upTo uint64, err error) {
	upTo = t.db.engine.Revision()
	it, err := t.db.engine.NewIter(changeKey(rev+1), changeKey(upTo+1))
	if err != nil {
		return nil, 0, err
	}
	defer func() { err = errors.Join(err, it.Close()) }()
	n := 0
	for ok := it.First(); ok; ok = it.Next() {
		c, err := parseChange(it.Key(), it.Value())
		if err != nil {
			return nil, 0, err
		}
		if strings.HasPrefix(c.key, t.prefix) {
			ev, err := t.replayed(c)
			if err != nil {
				return nil, 0, err
			}
			events = append(events, ev)
		}
		if n++; n == replayAtOnce {
			upTo = c.rev
			break
		}
	}
	// Check after reading: history that is not refused now was complete when it was read.
	if rev < t.db.compacted.Load() {
		return nil, 0, ErrCompacted
	}
	t.db.metrics.replayed.Add(float64(len(events)))
	return events, upTo, it.Error()
}

// replayed makes an event from a change on disk.
func (t *topic) replayed(c change) (*event, error) {
	ev := &event{rev: c.rev, op: c.op, cur: &entry{key: c.key, rev: c.rev}}
	if c.prev != 0 {
		ev.old = &entry{key: c.key, rev: c.prev}
	}
	if c.op == opDelete {
		return ev, nil
	}
	var err error
	if ev.data, err = t.value(ev.cur); err != nil {
		return nil, fmt.Errorf("replay revision %d: %w", c.rev, err)
	}
	return ev, nil
}
