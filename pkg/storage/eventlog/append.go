// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package eventlog

import (
	"context"
	"errors"
	"fmt"
	"maps"

	"github.com/platform-ai/platform/pkg/apis/core/v1alpha1"
	"github.com/platform-ai/platform/pkg/event"
	"github.com/platform-ai/platform/pkg/storage/engine"
	"github.com/platform-ai/platform/pkg/storage/quota"
)

// Append stores events at the end of a stream, all or none, and returns them as
// stored, in the order given. It returns after they are durable and visible.
//
// An event whose dedupKey is in the stream already is not stored again: the
// first one is returned in its place, also when the stream is closed; ErrTrimmed
// tells that it is no longer kept. Other errors are *event.FieldError,
// ErrBadStream, ErrClosed, ErrDeleted, *quota.LimitError, *quota.RateError and engine.ErrFull; an
// engine.ErrFailed means that the outcome is unknown. The events given are not
// changed. What the returned events point to is shared with watches: read only.
func (l *Log) Append(ctx context.Context, s Stream, events []*v1alpha1.ExecutionEvent) ([]*v1alpha1.ExecutionEvent, error) {
	start := l.opts.Clock.Now()
	t, err := l.append(ctx, s, events)
	l.metrics.appended(events, t, err, l.opts.Clock.Since(start).Seconds())
	if err != nil {
		return nil, fmt.Errorf("append to %s: %w", s, err)
	}
	stored, err := t.results()
	if err != nil {
		return nil, fmt.Errorf("append to %s: %w", s, err)
	}
	l.derive(t)
	return stored, nil
}

// append returns when the outcome is known.
func (l *Log) append(ctx context.Context, s Stream, events []*v1alpha1.ExecutionEvent) (*appendTxn, error) {
	if err := s.check(); err != nil {
		return nil, err
	}
	t, err := l.prepare(s, events)
	if err != nil {
		return nil, err
	}
	if len(events) == 0 {
		return t, nil
	}
	if err := l.checkRate(t); err != nil {
		return nil, err
	}
	err = l.commit(ctx, t)
	if limit, ok := errors.AsType[*quota.LimitError](err); ok {
		l.NoteLimit(ctx, s, "events", "EventLimitReached", limit)
	}
	return t, err
}

func (l *Log) commit(ctx context.Context, t *appendTxn) error {
	// From here on the caller is answered only when the outcome is known.
	if err := ctx.Err(); err != nil {
		return err
	}
	if err := t.lookAhead(); err != nil {
		return err
	}
	return l.engine.Commit(t)
}

// pending is one event on its way.
type pending struct {
	event    *v1alpha1.ExecutionEvent // sanitized, our own copy
	payload  []byte
	typ, sev uint8
	seq      int64 // assigned, or found by the de-duplication key
	fresh    bool  // not found by its key
	free     bool  // outside all limits
	entry    *entry
}

// appendTxn is an append in the commit pipeline.
type appendTxn struct {
	log     *Log
	stream  Stream
	events  []pending
	keyed   bool
	seen    int64            // last seq when found was read; -1 when it was not
	found   map[string]int64 // keys that are in the store
	head    *head
	cursor  *cursor
	replace *deletion // of the stream that had the name before
	renamed bool
	after   state
	to      int64 // the session's cursor after it
}

// prepare validates, sanitizes and encodes outside the commit.
func (l *Log) prepare(s Stream, events []*v1alpha1.ExecutionEvent) (*appendTxn, error) {
	t := &appendTxn{log: l, stream: s, events: make([]pending, len(events)), seen: -1}
	for i, e := range events {
		if err := event.Validate(e); err != nil {
			if len(events) > 1 {
				err = fmt.Errorf("item %d: %w", i, err)
			}
			return nil, err
		}
		e = e.DeepCopy()
		l.metrics.sanitized(e.Type, event.Sanitize(e))
		e.SessionName = s.Session
		sev, _ := severityCode(e.Severity)
		t.events[i] = pending{event: e, payload: appendPayload(nil, e), typ: typeCodes[e.Type], sev: sev, free: outside(e.Type)}
		t.keyed = t.keyed || e.DedupKey != ""
	}
	return t, nil
}

// lookAhead looks for the de-duplication keys before the commit, so that the
// commit leader need not read the store unless the stream grew in between.
func (t *appendTxn) lookAhead() error {
	if !t.keyed {
		return nil
	}
	l := t.log
	l.mu.Lock()
	h := l.heads.streams[t.stream.UID]
	if h == nil || h.inflight > 0 { // the store need not show all that is sequenced
		l.mu.Unlock()
		return nil
	}
	seen := h.sequenced.last
	l.mu.Unlock()
	found, err := t.readKeys(h.no)
	if err != nil {
		return err
	}
	t.seen, t.found = seen, found
	return nil
}

// readKeys returns the sequences of the keys that the store has.
func (t *appendTxn) readKeys(no uint64) (map[string]int64, error) {
	found := map[string]int64{}
	for i := range t.events {
		k := t.events[i].event.DedupKey
		if k == "" {
			continue
		}
		seq, ok, err := t.log.number(dedupKey(no, k))
		if err != nil {
			return nil, err
		}
		if ok {
			found[k] = int64(seq)
		}
	}
	return found, nil
}

// Need lets controllers end what runs on a full disk.
func (t *appendTxn) Need() engine.Need {
	for i := range t.events {
		if !t.events[i].free {
			return engine.Grow
		}
	}
	return engine.Upkeep
}

// Sequence decides and assigns. It runs on the commit leader.
func (t *appendTxn) Sequence(b *engine.Batch) error {
	l := t.log
	h, err := l.sequencedHead(t.stream)
	if err != nil {
		return err
	}
	fresh := h == nil
	if fresh {
		h = &head{
			identity:  identity{uid: t.stream.UID, ns: t.stream.Namespace, task: t.stream.Task},
			sequenced: state{oldest: 1},
		}
	}
	n, err := t.decide(h, fresh)
	if err != nil || n == 0 {
		t.head = h
		return err
	}
	if t.stream.Session != "" {
		if t.cursor, err = l.sequencedCursor(t.stream.Namespace, t.stream.Session); err != nil {
			return err
		}
	}
	var old *head
	if fresh {
		if old, err = l.sequencedName(t.stream.Namespace, t.stream.Task); err != nil {
			return err
		}
	}

	if _, err := l.totals.Held(t.stream.Namespace); err != nil {
		return err
	}

	// Nothing is refused from here on.
	if old != nil {
		if t.replace, err = l.sequenceDelete(b, old, old.sequenced.last, true); err != nil {
			return err
		}
	}
	return t.write(b, h, fresh)
}

// decide finds which events are new, and refuses them if the stream is closed.
func (t *appendTxn) decide(h *head, fresh bool) (int, error) {
	if h.sequenced.deleted != 0 {
		return 0, ErrDeleted
	}
	known, err := t.knownKeys(h, fresh)
	if err != nil {
		return 0, err
	}
	closed := h.sequenced.terminal != 0 // but for late events
	seq := h.sequenced.last
	for i := range t.events {
		p := &t.events[i]
		if k := p.event.DedupKey; k != "" {
			var ok bool
			if p.seq, ok = known[k]; ok {
				if p.seq < h.sequenced.oldest {
					return 0, ErrTrimmed
				}
				continue
			}
			known[k] = seq + 1
		}
		if closed && !event.Late(p.event.Type) {
			return 0, ErrClosed
		}
		seq++
		p.seq, p.fresh = seq, true
		closed = closed || event.Terminal(p.event.Type)
	}
	return int(seq - h.sequenced.last), t.checkTotal(h)
}

// knownKeys returns the sequences of those of the append's keys that the stream
// has. A key of a commit on its way is in the head, of a published one in the
// store; hence in this order.
func (t *appendTxn) knownKeys(h *head, fresh bool) (map[string]int64, error) {
	known := map[string]int64{}
	if !t.keyed || fresh {
		return known, nil
	}
	t.log.mu.Lock()
	for i := range t.events {
		k := t.events[i].event.DedupKey
		if seq, ok := h.keys[k]; ok {
			known[k] = seq
		}
	}
	t.log.mu.Unlock()
	found := t.found
	if t.seen != h.sequenced.last {
		var err error
		if found, err = t.readKeys(h.no); err != nil {
			return nil, err
		}
	}
	maps.Copy(known, found)
	return known, nil
}

// results returns what is stored of every event given.
func (t *appendTxn) results() ([]*v1alpha1.ExecutionEvent, error) {
	out := make([]*v1alpha1.ExecutionEvent, len(t.events))
	for i := range t.events {
		p := &t.events[i]
		if p.fresh {
			c := *p.entry.object() // what encodes it sets its kind
			out[i] = &c
			continue
		}
		raw, ok, err := t.log.engine.Get(dataKey(t.head.no, p.seq))
		if err != nil {
			return nil, err
		}
		if !ok { // it left and was purged in between
			if v, found, err := t.log.byUID(t.stream.UID); err == nil && found && v.deleted == 0 {
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
