// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package eventlog

import (
	"context"
	"fmt"
	"time"

	"github.com/platform-ai/platform/pkg/storage/engine"
)

// deletion records that events of a stream were removed, either all of them with the stream or the oldest
// ones. Event seq was removed at revision rev+seq-first.
type deletion struct {
	identity
	rev         uint64
	first, last int64 // the events
	whole       bool  // the stream was removed with them
	at          time.Time
	session     string
	mixed       bool // other sessions too
}

// of returns the revision at which event seq was removed.
func (d *deletion) of(seq int64) uint64 { return d.rev + uint64(seq-d.first) }

// has reports whether event seq is one of those removed.
func (d *deletion) has(seq int64) bool { return d.first <= seq && seq <= d.last }

// count returns how many events were removed.
func (d *deletion) count() int64 { return d.last - d.first + 1 }

// share returns how many of the bytes that a stream holds are removed with the events. It does not read the
// events but assumes that all are equally long. The error this leaves is corrected when the stream is
// deleted.
func (d *deletion) share(st *state) int64 {
	if d.whole {
		return st.held
	}
	return int64(float64(st.held) * float64(st.numbered(d.first, d.last)) / float64(st.numbered(st.oldest, st.last)))
}

// end returns the revision at which the last event was removed.
func (d *deletion) end() uint64 { return d.of(d.last) }

// DeleteStream removes a stream and all its events. Watches get a DELETED event for each, and later appends
// return ErrDeleted. Deleting a stream that does not exist or is already deleted is not an error. The cost
// does not depend on the number of events.
func (w *Writer) DeleteStream(ctx context.Context, s Stream) error {
	return w.remove(ctx, "delete", &removeTxn{w: w, stream: s, whole: true})
}

// Trim removes the events of a stream whose seq is below before. It always keeps the terminal event, all
// events after it, and the newest event; Head.Oldest is the first seq that remains. Watches get a DELETED
// event for each removed event. Readers by seq or by a session's cursor get a Gap; neither number is ever
// reused. Trimming a stream that does not exist, is deleted, or begins at or after before is not an error.
// The cost does not depend on the number of events. Purge removes the bytes after the window of history.
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

	gone *deletion // nil if there was nothing to do
}

// Need returns Free, because a removal makes room.
func (t *removeTxn) Need() engine.Need { return engine.Free }

// Sequence decides which events are removed, and writes the deletion.
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
	before := min(h.sequenced.given(t.before), h.sequenced.last)
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

// sequenceRemoval assigns a revision to each event of a live stream up to last and writes one record for
// all of them. If whole is set, the stream is removed too, and the caller must write its name key. An error
// is returned before anything is written.
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

// publishRemoval shows a removal to readers. The caller holds mu.
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
