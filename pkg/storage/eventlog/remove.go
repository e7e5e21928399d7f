// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package eventlog

import (
	"context"
	"fmt"
	"time"

	"github.com/platform-ai/platform/pkg/storage/engine"
)

// deletion says that events of a stream left, all of them with the stream or the
// oldest: event seq at revision rev+seq-first.
type deletion struct {
	identity
	rev         uint64
	first, last int64 // the events
	whole       bool  // the stream left with them
	at          time.Time
	session     string
	mixed       bool // other sessions too
}

// of returns the revision at which event seq left.
func (d *deletion) of(seq int64) uint64 { return d.rev + uint64(seq-d.first) }

// has reports whether event seq is one of those that left.
func (d *deletion) has(seq int64) bool { return d.first <= seq && seq <= d.last }

// count returns how many events left.
func (d *deletion) count() int64 { return d.last - d.first + 1 }

// share is how many of the bytes that a stream holds leave with the events. Without reading them it takes all for equally
// long; what that is wrong by is right again when the stream is deleted.
func (d *deletion) share(st *state) int64 {
	if d.whole {
		return st.held
	}
	return int64(float64(st.held) * float64(d.count()) / float64(st.last-st.oldest+1))
}

// end returns the revision at which the last event left.
func (d *deletion) end() uint64 { return d.of(d.last) }

// DeleteStream removes a stream and all its events. Watches get a DELETED event
// for each, later appends ErrDeleted. A stream that does not exist, or is deleted
// already, is no error. The cost does not depend on the number of events.
func (w *Writer) DeleteStream(ctx context.Context, s Stream) error {
	return w.remove(ctx, "delete", &removeTxn{w: w, stream: s, whole: true})
}

// Trim removes the events of a stream whose seq is below before. The terminal
// event and what follows it always stay, and so does the newest event; Head.Oldest
// says what was reached. Watches get a DELETED event for each that left; readers
// by seq or by a session's cursor get a Gap, and neither is ever given again. A
// stream that does not exist, is deleted, or begins at or after before is no error.
// The cost does not depend on the number of events; Purge removes the bytes after
// the window of history.
func (w *Writer) Trim(ctx context.Context, s Stream, before int64) error {
	return w.remove(ctx, "trim", &removeTxn{w: w, stream: s, before: before})
}

func (w *Writer) remove(ctx context.Context, verb string, t *removeTxn) error {
	err := ctx.Err()
	switch {
	case t.stream.UID == "":
		err = ErrBadStream
	case err == nil:
		err = w.engine.Commit(t)
	}
	if err != nil {
		return fmt.Errorf("%s %s: %w", verb, t.stream, err)
	}
	w.purger.press()
	return nil
}

// removeTxn is a removal in the commit pipeline; see appendTxn for its phases.
type removeTxn struct {
	// Set by the caller.

	w      *Writer
	stream Stream
	whole  bool  // the stream is removed
	before int64 // otherwise, the first seq to keep

	// Set by Sequence.

	gone *deletion // nil: there was nothing to do
}

// Need says that it makes room.
func (t *removeTxn) Need() engine.Need { return engine.Free }

// Sequence decides what leaves, and writes it.
func (t *removeTxn) Sequence(b engine.Batch) error {
	h, err := t.w.sequencedHead(t.stream)
	if err != nil || h == nil || h.sequenced.deleted != 0 {
		return err
	}
	if t.whole {
		if t.gone, err = t.w.sequenceRemoval(b, h, h.sequenced.last, true); err != nil {
			return err
		}
		return b.Delete(nameKey(h.ns, h.task))
	}
	before := min(t.before, h.sequenced.last)
	if h.sequenced.terminal != 0 {
		before = min(before, h.sequenced.end)
	}
	if before > h.sequenced.oldest {
		t.gone, err = t.w.sequenceRemoval(b, h, before-1, false)
	}
	return err
}

// Publish shows the removal to readers.
func (t *removeTxn) Publish() {
	if t.gone == nil {
		return
	}
	t.w.mu.Lock()
	defer t.w.mu.Unlock()
	t.w.publishRemoval(t.gone)
	t.w.engine.Advance(t.gone.end())
}

// sequenceRemoval assigns a revision to each event of a live stream up to last and
// writes the one record of them all. With whole the stream goes, and its name is
// the caller's to write. What it refuses it refuses before it writes.
func (w *Writer) sequenceRemoval(b engine.Batch, h *head, last int64, whole bool) (*deletion, error) {
	st := h.sequenced
	d := &deletion{
		identity: h.identity, first: st.oldest, last: last, whole: whole,
		at: w.opts.Clock.Now(), session: st.session, mixed: st.mixed,
	}
	change := Change{Stream: Stream{Namespace: h.ns, Task: h.task, UID: h.uid}, At: d.at, Bytes: -d.share(&st)}
	if err := w.projections.admit(&change); err != nil {
		return nil, err
	}
	for i := range d.count() {
		rev := b.Next()
		if i == 0 {
			d.rev = rev
		}
		st.changed = rev
	}
	st.held += change.Bytes
	if whole {
		st.deleted = d.rev
	} else {
		st.oldest = last + 1
	}
	r := &recorder{batch: b, err: w.projections.project(b, &change)}
	r.set(headKey(h.no), encodeHead(&h.identity, &st))
	r.set(deletedKey(d.rev), encodeDeletion(d))
	if r.err != nil {
		return nil, r.err
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	h.sequenced = st
	h.inflight++
	if whole {
		w.heads.rename(taskName{h.ns, h.task}, nil)
	}
	return d, nil
}

// publishRemoval shows a removal; mu is held.
func (w *Writer) publishRemoval(d *deletion) {
	name := taskName{d.ns, d.task}
	if h := w.heads.streams[d.uid]; h != nil && h.no == d.no {
		h.published.changed = d.end()
		h.inflight--
		if d.whole {
			h.published.deleted = d.rev
		} else {
			h.published.oldest = d.last + 1
		}
		if d.whole && w.heads.live[name] == h {
			delete(w.heads.live, name)
		}
	}
	if d.whole {
		w.heads.renamed(name)
	}
	w.left.remember(d)
	w.hub.deliver(&entry{posting: posting{rev: d.rev, no: d.no, seq: d.last}, id: &d.identity, session: d.session, gone: d})
}
