// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package eventlog

import (
	"encoding/binary"
	"errors"

	"github.com/platform-ai/platform/pkg/event"
	"github.com/platform-ai/platform/pkg/storage/engine"
)

// write assigns revisions and cursors and writes all records of the append.
func (t *appendTxn) write(b *engine.Batch, h *head, fresh bool) error {
	l := t.log
	created := l.opts.Clock.Now().UnixMicro()
	st := h.sequenced
	if t.cursor != nil {
		t.to = t.cursor.sequenced
	}
	var w writer
	for i := range t.events {
		p := &t.events[i]
		if !p.fresh {
			continue
		}
		hd := header{rev: b.Next(), typ: p.typ, sev: p.sev, created: created}
		if fresh && h.no == 0 {
			h.no = hd.rev
		}
		if t.cursor != nil {
			t.to++
			hd.cursor = t.to
		}
		w.event(b, h, t.stream.Session, p, hd)
		p.entry = &entry{
			posting: posting{rev: hd.rev, no: h.no, seq: p.seq, cursor: hd.cursor, typ: p.typ, sev: p.sev},
			id:      &h.identity, session: t.stream.Session, header: hd, event: p.event,
		}
		st.last, st.changed = p.seq, hd.rev
		size := int64(len(p.payload) + headerLen + indexCost)
		st.bytes, st.held = st.bytes+size, st.held+size
		if event.Terminal(p.event.Type) {
			st.terminal, st.end = p.typ, p.seq
		}
	}
	st.join(t.stream.Session)
	no := binary.BigEndian.AppendUint64(nil, h.no)
	if fresh {
		w.set(b, uidKey(h.uid), no)
		w.set(b, nameKey(h.ns, h.task), no)
	}
	w.set(b, headKey(h.no), encodeHead(&h.identity, &st))
	w.err = errors.Join(w.err, l.totals.Add(b, h.ns, st.held-h.sequenced.held))
	if t.cursor != nil {
		w.set(b, cursorKey(t.cursor.ns, t.cursor.session), binary.BigEndian.AppendUint64(nil, uint64(t.to)))
	}
	if w.err != nil {
		return w.err
	}
	t.after, t.renamed = st, fresh
	t.pin(h, fresh)
	return nil
}

// join notes the session of new events.
func (s *state) join(session string) {
	switch {
	case session == "" || session == s.session:
	case s.session == "":
		s.session = session
	default:
		s.mixed = true
	}
}

// pin makes the sequenced state visible to the commits that follow.
func (t *appendTxn) pin(h *head, fresh bool) {
	l := t.log
	l.mu.Lock()
	defer l.mu.Unlock()
	t.head = h
	h.sequenced = t.after
	h.inflight++
	if fresh {
		l.heads.add(h)
		l.heads.rename(taskName{h.ns, h.task}, h)
	}
	for i := range t.events {
		if p := &t.events[i]; p.fresh && p.event.DedupKey != "" {
			if h.keys == nil {
				h.keys = map[string]int64{}
			}
			h.keys[p.event.DedupKey] = p.seq
		}
	}
	if t.cursor != nil {
		t.cursor.sequenced = t.to
		t.cursor.inflight++
	}
}

// Publish makes the append visible, in order with all others.
func (t *appendTxn) Publish() {
	if t.after.last == 0 {
		return // every event was there already
	}
	l, h := t.log, t.head
	l.mu.Lock()
	defer l.mu.Unlock()
	if t.replace != nil {
		l.publishDelete(t.replace)
	}
	h.published, h.exists = t.after, true
	h.inflight--
	if t.renamed {
		name := taskName{h.ns, h.task}
		l.heads.live[name] = h
		l.heads.renamed(name)
		l.idents.Add(h.no, &h.identity)
	}
	for i := range t.events {
		if p := &t.events[i]; p.fresh {
			delete(h.keys, p.event.DedupKey)
			l.deliver(p.entry)
		}
	}
	if t.cursor != nil {
		t.cursor.published = t.to
		t.cursor.inflight--
	}
	l.engine.Advance(t.after.changed)
}

// writer writes records and keeps the first error.
type writer struct{ err error }

func (w *writer) set(b *engine.Batch, k, v []byte) { w.err = errors.Join(w.err, b.Set(k, v)) }

// event writes an event and its index entries.
func (w *writer) event(b *engine.Batch, h *head, session string, p *pending, hd header) {
	k := dataKey(h.no, p.seq)
	bk, bv, finish := b.SetDeferred(len(k), headerLen+len(p.payload))
	copy(bk, k)
	hd.put(bv)
	copy(bv[headerLen:], p.payload)
	w.err = errors.Join(w.err, finish())

	facets := [...]facet{hd.typ, facetSeverity + hd.sev}
	var short [facetValueLen]byte
	putFacet(short[:], hd.rev, hd.typ, hd.sev)
	for _, f := range facets {
		w.set(b, facetKey(h.no, f, p.seq), short[:])
	}
	var long [sessionPointerLen]byte
	binary.BigEndian.PutUint64(long[:], hd.rev)
	pointer := long[8:]
	putPointer(pointer, h.no, p.seq, hd.typ, hd.sev)
	w.set(b, revisionKey(hd.rev), pointer)
	w.set(b, namespaceKey(facetAll, h.ns, hd.rev), pointer)
	for _, f := range facets {
		w.set(b, namespaceKey(f, h.ns, hd.rev), pointer)
	}
	if hd.cursor != 0 {
		w.set(b, sessionKey(h.ns, session, hd.cursor), long[:])
	}
	if d := p.event.DedupKey; d != "" {
		w.set(b, dedupKey(h.no, d), binary.BigEndian.AppendUint64(nil, uint64(p.seq)))
	}
}

// sequencedHead returns the head of a stream as sequenced, nil when there is none.
func (l *Log) sequencedHead(s Stream) (*head, error) {
	l.mu.Lock()
	h := l.heads.streams[s.UID]
	if h != nil {
		l.heads.order.MoveToFront(h.lru)
	}
	l.mu.Unlock()
	if h != nil {
		return h, nil
	}
	no, ok, err := l.number(uidKey(s.UID))
	if err != nil || !ok {
		return nil, err
	}
	return l.loadHead(no)
}

// loadHead brings a head into the cache. Only the commit leader may: what is
// not in the cache has no commit on its way, so the store is the truth.
func (l *Log) loadHead(no uint64) (*head, error) {
	id, st, ok, err := l.stored(no)
	if err != nil || !ok {
		return nil, err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if h := l.heads.streams[id.uid]; h != nil {
		return h, nil
	}
	h := &head{identity: id, sequenced: st, published: st, exists: true}
	l.heads.add(h)
	return h, nil
}

// sequencedName returns the live stream of a task name as sequenced, or nil.
func (l *Log) sequencedName(ns, task string) (*head, error) {
	name := taskName{ns, task}
	l.mu.Lock()
	change, live := l.heads.names[name], l.heads.live[name]
	l.mu.Unlock()
	switch {
	case change != nil:
		return change.head, nil
	case live != nil:
		l.mu.Lock()
		l.heads.order.MoveToFront(live.lru)
		l.mu.Unlock()
		return live, nil
	}
	no, ok, err := l.number(nameKey(ns, task))
	if err != nil || !ok {
		return nil, err
	}
	return l.loadHead(no)
}

// sequencedCursor returns the head of a session as sequenced.
func (l *Log) sequencedCursor(ns, session string) (*cursor, error) {
	name := taskName{ns, session}
	l.mu.Lock()
	c := l.heads.sessions[name]
	if c != nil {
		l.heads.order.MoveToFront(c.lru)
	}
	l.mu.Unlock()
	if c != nil {
		return c, nil
	}
	last, _, err := l.number(cursorKey(ns, session))
	if err != nil {
		return nil, err
	}
	c = &cursor{ns: ns, session: session, sequenced: int64(last), published: int64(last)}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.heads.addSession(c)
	return c, nil
}
