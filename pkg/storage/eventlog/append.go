// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package eventlog

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/platform-ai/platform/pkg/apis/core/v1alpha1"
	"github.com/platform-ai/platform/pkg/event"
	"github.com/platform-ai/platform/pkg/storage/engine"
)

// appendTxn is one append. It passes through these phases:
//
//  1. Sanitize and prepare, on the caller's goroutine, sanitize and
//     encode the events. Expensive work is done here, where appends run in parallel.
//  2. lookAhead, also on the caller's goroutine, reads which de-duplication keys the store has.
//  3. Sequence, on the commit leader, handles one append at a time. Its steps are
//     locate, which finds the stream; decide, which finds the new events and refuses
//     those that may not be appended; neighbours, which finds the session and the stream
//     that had the task's name; number, which assigns revisions and cursors and writes
//     the events; write, which writes the rest into the batch of the group; and pin,
//     which makes the result the starting point of the next append. Nothing is refused
//     once the first record is written.
//  4. The engine syncs the batch, while the next group is sequenced.
//  5. Publish, in the order of Sequence, shows the result to readers.
//  6. results, on the caller's goroutine again, builds the answer.
//
// Each field is set in the phase named above it and is only read in later phases. The engine orders the
// phases, so no field needs a lock. The values that head and cursor point to outlive the append; shared.mu
// guards them.
type appendTxn struct {
	// Set by prepare.

	w      *Writer
	stream Stream
	events []pending
	keyed  bool   // an event has a de-duplication key
	notes  *notes // of the caller, for projections; set by append

	// Set by lookAhead.

	seen  int64            // last seq when found was read; -1 if it was not read
	found map[string]int64 // seq by key, for the keys that the store has

	// Set by Sequence: locate.

	head  *head // of the stream; made here if there is none
	fresh bool  // head was made by this append

	// Set by Sequence: decide.

	change  Change // what projections get; its events are those above
	skipped *skip  // the seqs before the new events that are left out; nil for none

	// Set by Sequence: neighbours.

	cursor *cursor // of the session; nil without one
	rival  *head   // live stream of another UID that has the task's name; nil for none

	// Set by Sequence: number and write.

	replaced *deletion // of rival
	after    state     // of head; last is 0 when no event was new
	to       int64     // of cursor
	moved    bool      // cursor left some out
}

// pending is one event of an append.
type pending struct {
	// Set by prepare.

	event    *v1alpha1.ExecutionEvent // sanitized, a copy
	payload  []byte                   // the record without its header
	typ, sev uint8
	free     bool // no limit applies to it
	begins   bool // it begins work

	// Set by decide.

	seq   int64 // assigned, or found by the de-duplication key
	fresh bool  // not found by its key

	// Set by number, of a fresh event.

	entry *entry
}

// size returns about how many bytes the event takes on disk.
func (p *pending) size() int64 { return int64(len(p.payload) + headerLen + indexCost) }

// prepare returns an append of the events.
func (w *Writer) prepare(s Stream, events Sanitized) (*appendTxn, error) {
	t := &appendTxn{w: w, stream: s, events: make([]pending, len(events.events)), seen: -1}
	for i, e := range events.events {
		typ, known := typeCodes[e.Type]
		if !known { // a caller who promised to have validated the events has not
			return nil, fmt.Errorf("event type %q has no code", e.Type)
		}
		w.metrics.sanitized(e.Type, events.reports[i])
		e.SessionName = s.Session
		if e.AgentName == "" {
			e.AgentName = s.Agent
		}
		sev, _ := severityCode(e.Severity)
		t.events[i] = pending{event: e, payload: appendPayload(nil, e), typ: typ, sev: sev, free: outside(e.Type), begins: event.Begins(e)}
		t.keyed = t.keyed || e.DedupKey != ""
	}
	return t, nil
}

// lookAhead looks up the de-duplication keys before the commit. The commit leader then need not read the
// store unless the stream grew in between.
func (t *appendTxn) lookAhead() error {
	if !t.keyed {
		return nil
	}
	w := t.w
	w.mu.Lock()
	h := w.heads.streams[t.stream.UID]
	if h == nil || h.inflight > 0 { // the store may not yet show everything that is sequenced
		w.mu.Unlock()
		return nil
	}
	seen := h.sequenced.last
	w.mu.Unlock()
	found, err := t.readKeys(h.no)
	if err != nil {
		return err
	}
	t.seen, t.found = seen, found
	return nil
}

// Need returns Upkeep if no limit applies to any of the events, and otherwise Grow. As the disk fills up, controllers
// can thus end running tasks after creates and the events of workers are refused, as long as half of the reserve is
// free.
func (t *appendTxn) Need() engine.Need {
	for i := range t.events {
		if !t.events[i].free {
			return engine.Grow
		}
	}
	return engine.Upkeep
}

// Sequence decides which events are new, or refuses the append, and writes the new events.
func (t *appendTxn) Sequence(b engine.Batch) error {
	if err := t.locate(); err != nil {
		return err
	}
	n, err := t.decide()
	if err != nil || n == 0 {
		return err
	}
	if err := t.neighbours(); err != nil {
		return err
	}
	if t.rival != nil {
		// sequenceRemoval refuses before it writes, and nothing else has been written yet.
		if t.replaced, err = t.w.sequenceRemoval(b, t.rival, t.rival.sequenced.last, true); err != nil {
			return err
		}
	}
	r := &recorder{batch: b}
	t.number(r)
	if err := t.write(r); err != nil {
		return err
	}
	t.pin()
	return nil
}

// locate finds the sequenced head of the stream, or makes one.
func (t *appendTxn) locate() (err error) {
	if t.head, err = t.w.sequencedHead(t.stream); err != nil || t.head != nil {
		return err
	}
	t.fresh = true
	t.head = &head{
		identity:  identity{uid: t.stream.UID, ns: t.stream.Namespace, task: t.stream.Task, root: t.stream.Root},
		sequenced: state{oldest: 1, counted: 1},
		cancelled: isNot,
	}
	return nil
}

// decide finds which events are new and returns their number. It refuses them if the stream is closed, if one begins work of a
// task that was cancelled, if a limit is reached, or if a projection refuses them.
func (t *appendTxn) decide() (int64, error) {
	st := &t.head.sequenced
	if st.deleted != 0 {
		return 0, ErrDeleted
	}
	known, err := t.knownKeys()
	if err != nil {
		return 0, err
	}
	t.change = Change{Stream: t.stream, At: t.w.opts.Clock.Now(), notes: t.notes, events: t.events}
	closed := st.terminal != 0 // except for late events
	seq, n, limited := st.last, int64(0), int64(0)
	if t.skipped = t.head.skipAt(t.w.engine.Base()); t.skipped != nil {
		seq = t.skipped.to
	}
	for i := range t.events {
		p := &t.events[i]
		if k := p.event.DedupKey; k != "" {
			var ok bool
			if p.seq, ok = known[k]; ok {
				if p.seq < st.oldest {
					return 0, ErrTrimmed
				}
				continue
			}
			known[k] = seq + 1
		}
		if err := t.admits(p, closed); err != nil {
			return 0, err
		}
		seq, n = seq+1, n+1
		p.seq, p.fresh = seq, true
		closed = closed || event.Terminal(p.event.Type)
		t.change.Bytes += p.size()
		if !p.free {
			limited++
			t.change.Limited += p.size()
		}
	}
	if n == 0 {
		return 0, nil
	}
	if err := t.w.opts.Limits.checkTask(st, limited, t.change.Limited); err != nil {
		return 0, err
	}
	return n, t.w.projections.admit(&t.change)
}

// admits refuses an event that may not follow those of the stream.
func (t *appendTxn) admits(p *pending, closed bool) error {
	if closed && !event.Late(p.event.Type) {
		return ErrClosed
	}
	if p.begins {
		if cancelled, err := t.cancelled(); err != nil || cancelled {
			return cmp.Or(err, ErrCancelled)
		}
	}
	return nil
}

// cancelled reports whether the stream has the mark of a cancellation. It reads the store once for each head; the mark of a commit in
// flight has set the answer.
func (t *appendTxn) cancelled() (bool, error) {
	if t.head.cancelled == unknown {
		_, marked, err := t.w.number(dedupKey(t.head.no, event.CancelKey))
		if err != nil {
			return false, err
		}
		if t.head.cancelled = isNot; marked {
			t.head.cancelled = is
		}
	}
	return t.head.cancelled == is, nil
}

// knownKeys returns the sequence numbers of those of the append's keys that the stream has. A key of a
// commit in flight is in the head, and a key of a published commit is in the store, so the head is read
// first.
func (t *appendTxn) knownKeys() (map[string]int64, error) {
	known := map[string]int64{}
	if !t.keyed || t.fresh {
		return known, nil
	}
	t.w.mu.Lock()
	for i := range t.events {
		k := t.events[i].event.DedupKey
		if seq, ok := t.head.keys[k]; ok {
			known[k] = seq
		}
	}
	t.w.mu.Unlock()
	found := t.found
	if t.seen != t.head.sequenced.last {
		var err error
		if found, err = t.readKeys(t.head.no); err != nil {
			return nil, err
		}
	}
	maps.Copy(known, found)
	return known, nil
}

// readKeys returns the sequence numbers of the keys that the store has.
func (t *appendTxn) readKeys(no uint64) (map[string]int64, error) {
	found := map[string]int64{}
	for i := range t.events {
		k := t.events[i].event.DedupKey
		if k == "" {
			continue
		}
		seq, ok, err := t.w.number(dedupKey(no, k))
		if err != nil {
			return nil, err
		}
		if ok {
			found[k] = int64(seq)
		}
	}
	return found, nil
}

// neighbours finds what the append changes besides its stream.
func (t *appendTxn) neighbours() (err error) {
	if t.stream.Session != "" {
		if t.cursor, err = t.w.sequencedCursor(t.stream.Namespace, t.stream.Session); err != nil {
			return err
		}
	}
	if t.fresh {
		t.rival, err = t.w.sequencedName(t.stream.Namespace, t.stream.Task)
	}
	return err
}

// number assigns revisions and cursors to the new events, and writes them.
func (t *appendTxn) number(r *recorder) {
	h, created := t.head, t.change.At.UnixMicro()
	t.after = h.sequenced
	if t.cursor != nil {
		t.to = t.cursor.sequenced
		if t.moved = t.cursor.stale; t.moved {
			t.to += sessionSkip
		}
	}
	if t.skipped != nil {
		t.after.skips = append(slices.Clip(t.after.skips), *t.skipped)
	}
	counts, err := parseTally(t.after.counts)
	r.err = errors.Join(r.err, err)
	first := true
	for i := range t.events {
		p := &t.events[i]
		if !p.fresh {
			continue
		}
		hd := header{rev: r.batch.Next(), typ: p.typ, sev: p.sev, created: created}
		if h.no == 0 { // locate made the head, so no other append can see it yet
			h.no = hd.rev
		}
		if t.cursor != nil {
			t.to++
			hd.cursor = t.to
		}
		r.event(&h.identity, t.stream.Session, p, hd)
		p.entry = &entry{
			posting: posting{rev: hd.rev, no: h.no, seq: p.seq, cursor: hd.cursor, typ: p.typ, sev: p.sev},
			id:      &h.identity, session: t.stream.Session, header: hd, event: p.event, skips: first && (t.skipped != nil || t.moved),
		}
		first = false
		if counts.count(p.typ, p.sev, 1); p.seq%markEvery == 0 {
			r.set(markKey(h.no, p.seq), encodeMark(created, &counts))
		}
		t.after.last, t.after.changed = p.seq, hd.rev
		if event.Terminal(p.event.Type) {
			t.after.terminal, t.after.end = p.typ, p.seq
		}
	}
	t.after.bytes += t.change.Bytes
	t.after.held += t.change.Bytes
	t.after.counts = string(counts.append(make([]byte, 0, 64)))
	t.after.join(t.stream.Session)
}

// write writes what the new events change: the stream, the session, and the rows of projections.
func (t *appendTxn) write(r *recorder) error {
	h := t.head
	if t.fresh {
		r.setNumber(uidKey(h.uid), h.no)
		r.setNumber(nameKey(h.ns, h.task), h.no)
	}
	r.set(headKey(h.no), encodeHead(&h.identity, &t.after))
	if t.skipped != nil {
		r.set(skipKey(h.no, t.skipped.to), t.skipped.encode())
	}
	if t.cursor != nil {
		r.setNumber(cursorKey(t.cursor.ns, t.cursor.session), uint64(t.to))
	}
	if t.moved {
		r.setNumber(movedKey(t.cursor.ns, t.cursor.session), t.w.engine.Base())
	}
	return errors.Join(r.err, t.w.projections.project(r.batch, &t.change))
}

// pin makes the sequenced state visible to the commits that follow.
func (t *appendTxn) pin() {
	w, h := t.w, t.head
	w.mu.Lock()
	defer w.mu.Unlock()
	h.sequenced = t.after
	h.inflight++
	if t.fresh {
		w.heads.add(h)
		w.heads.rename(taskName{h.ns, h.task}, h)
	}
	for i := range t.events {
		if p := &t.events[i]; p.fresh && p.event.DedupKey != "" {
			if h.keys == nil {
				h.keys = map[string]int64{}
			}
			h.keys[p.event.DedupKey] = p.seq
			if p.event.DedupKey == event.CancelKey {
				h.cancelled = is
			}
		}
	}
	if t.cursor != nil {
		t.cursor.sequenced, t.cursor.stale = t.to, false
		t.cursor.inflight++
	}
}

// Publish shows the append to readers.
func (t *appendTxn) Publish() {
	if t.after.last == 0 {
		return // every event was there already
	}
	w, h := t.w, t.head
	w.mu.Lock()
	defer w.mu.Unlock()
	if t.replaced != nil {
		w.publishRemoval(t.replaced)
	}
	h.published, h.exists = t.after, true
	h.inflight--
	if t.fresh {
		name := taskName{h.ns, h.task}
		w.heads.live[name] = h
		w.heads.renamed(name)
		w.idents.Add(h.no, &h.identity)
	}
	for i := range t.events {
		if p := &t.events[i]; p.fresh {
			delete(h.keys, p.event.DedupKey)
			w.hub.deliver(p.entry)
		}
	}
	if t.cursor != nil {
		t.cursor.published = t.to
		t.cursor.inflight--
	}
	w.engine.Advance(t.after.changed)
}

// results returns the stored form of every event given.
func (t *appendTxn) results() ([]*v1alpha1.ExecutionEvent, error) {
	out := make([]*v1alpha1.ExecutionEvent, len(t.events))
	for i := range t.events {
		p := &t.events[i]
		if p.fresh {
			c := *p.entry.object() // the caller's encoder sets the kind on the copy
			out[i] = &c
			continue
		}
		raw, ok, err := t.w.engine.Get(dataKey(t.head.no, p.seq))
		if err != nil {
			return nil, err
		}
		if !ok { // it was deleted and purged in between
			if v, found, err := t.w.byUID(t.stream.UID); err == nil && found && v.deleted == 0 {
				return nil, ErrTrimmed
			}
			return nil, ErrDeleted
		}
		if out[i], _, err = t.head.decode(p.seq, raw); err != nil {
			return nil, err
		}
	}
	return out, nil
}
