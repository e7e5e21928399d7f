// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package eventlog

// The methods below return sequenced state, which may not be published yet. They run on the commit leader.

// sequencedHead returns the sequenced head of a stream, or nil if there is none.
func (w *Writer) sequencedHead(s Stream) (*head, error) {
	w.mu.Lock()
	h := w.heads.streams[s.UID]
	if h != nil {
		w.heads.order.MoveToFront(h.lru)
	}
	w.mu.Unlock()
	if h != nil {
		return h, nil
	}
	no, ok, err := w.number(uidKey(s.UID))
	if err != nil || !ok {
		return nil, err
	}
	return w.loadHead(no)
}

// loadHead loads a head into the cache. Only the commit leader may call it. A head that is not in the cache
// has no commit in flight, so the store holds its newest state.
func (w *Writer) loadHead(no uint64) (*head, error) {
	id, st, ok, err := w.stored(no)
	if err != nil || !ok {
		return nil, err
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if h := w.heads.streams[id.uid]; h != nil {
		return h, nil
	}
	h := &head{identity: id, sequenced: st, published: st, exists: true}
	w.heads.add(h)
	return h, nil
}

// sequencedName returns the live stream of a task name as sequenced, or nil.
func (w *Writer) sequencedName(ns, task string) (*head, error) {
	name := taskName{ns, task}
	w.mu.Lock()
	change, live := w.heads.names[name], w.heads.live[name]
	if change == nil && live != nil {
		w.heads.order.MoveToFront(live.lru)
	}
	w.mu.Unlock()
	switch {
	case change != nil:
		return change.head, nil
	case live != nil:
		return live, nil
	}
	no, ok, err := w.number(nameKey(ns, task))
	if err != nil || !ok {
		return nil, err
	}
	return w.loadHead(no)
}

// sequencedCursor returns the head of a session as sequenced.
func (w *Writer) sequencedCursor(ns, session string) (*cursor, error) {
	name := taskName{ns, session}
	w.mu.Lock()
	c := w.heads.sessions[name]
	if c != nil {
		w.heads.order.MoveToFront(c.lru)
	}
	w.mu.Unlock()
	if c != nil {
		return c, nil
	}
	last, _, err := w.number(cursorKey(ns, session))
	if err != nil {
		return nil, err
	}
	c = &cursor{ns: ns, session: session, sequenced: int64(last), published: int64(last)}
	if last > 0 {
		if c.stale, err = w.stale(ns, session); err != nil {
			return nil, err
		}
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.heads.addSession(c)
	return c, nil
}
