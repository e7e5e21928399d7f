// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package eventlog

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/platform-ai/platform/pkg/storage/engine"
)

// deletion tells that events of a stream left, all of them with the stream or the
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
func (l *Log) DeleteStream(ctx context.Context, s Stream) error {
	if s.UID == "" {
		return fmt.Errorf("delete %s: %w", s, ErrBadStream)
	}
	if err := ctx.Err(); err != nil {
		return fmt.Errorf("delete %s: %w", s, err)
	}
	if err := l.engine.Commit(&deleteTxn{log: l, stream: s}); err != nil {
		return fmt.Errorf("delete %s: %w", s, err)
	}
	l.press()
	return nil
}

type deleteTxn struct {
	log     *Log
	stream  Stream
	deleted *deletion // nil: there was nothing to do
}

// Need says that it makes room.
func (t *deleteTxn) Need() engine.Need { return engine.Free }

// Sequence runs on the commit leader.
func (t *deleteTxn) Sequence(b *engine.Batch) error {
	h, err := t.log.sequencedHead(t.stream)
	if err != nil || h == nil || h.sequenced.deleted != 0 {
		return err
	}
	if t.deleted, err = t.log.sequenceDelete(b, h, h.sequenced.last, true); err != nil {
		return err
	}
	return b.Delete(nameKey(h.ns, h.task))
}

// Publish runs in order with all others.
func (t *deleteTxn) Publish() {
	if t.deleted == nil {
		return
	}
	l := t.log
	l.mu.Lock()
	defer l.mu.Unlock()
	l.publishDelete(t.deleted)
	l.engine.Advance(t.deleted.end())
}

// sequenceDelete assigns a revision to each event of a live stream up to last and
// writes the one record of them all. With whole the stream goes, and its name is
// the caller's to write.
func (l *Log) sequenceDelete(b *engine.Batch, h *head, last int64, whole bool) (*deletion, error) {
	st := h.sequenced
	if _, err := l.totals.Held(h.ns); err != nil {
		return nil, err
	}
	d := &deletion{
		identity: h.identity, first: st.oldest, last: last, whole: whole,
		at: l.opts.Clock.Now(), session: st.session, mixed: st.mixed,
	}
	for i := range d.count() {
		rev := b.Next()
		if i == 0 {
			d.rev = rev
		}
		st.changed = rev
	}
	st.held -= d.share(&st)
	if whole {
		st.deleted = d.rev
	} else {
		st.oldest = last + 1
	}
	var w writer
	w.err = l.totals.Add(b, h.ns, st.held-h.sequenced.held)
	w.set(b, headKey(h.no), encodeHead(&h.identity, &st))
	w.set(b, deletedKey(d.rev), encodeDeletion(d))
	if w.err != nil {
		return nil, w.err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	h.sequenced = st
	h.inflight++
	if whole {
		l.heads.rename(taskName{h.ns, h.task}, nil)
	}
	return d, nil
}

// publishDelete makes a deletion visible; mu is held.
func (l *Log) publishDelete(d *deletion) {
	name := taskName{d.ns, d.task}
	if h := l.heads.streams[d.uid]; h != nil && h.no == d.no {
		h.published.changed = d.end()
		h.inflight--
		if d.whole {
			h.published.deleted = d.rev
		} else {
			h.published.oldest = d.last + 1
		}
		if d.whole && l.heads.live[name] == h {
			delete(l.heads.live, name)
		}
	}
	if d.whole {
		l.heads.renamed(name)
	}
	l.remember(d)
	l.deliver(&entry{posting: posting{rev: d.rev, no: d.no, seq: d.last}, id: &d.identity, session: d.session, gone: d})
}

// remember notes a deletion for readers; mu is held or not needed yet.
func (l *Log) remember(d *deletion) {
	name := taskName{d.ns, d.task}
	l.deleted[d.no] = append(l.deleted[d.no], d)
	l.byName[name] = append(l.byName[name], d)
	l.leaving.Store(int64(len(l.deleted)))
}

// forget undoes remember; mu is held.
func (l *Log) forget(d *deletion) {
	l.forgotten++
	without(l.deleted, d.no, d)
	without(l.byName, taskName{d.ns, d.task}, d)
	l.leaving.Store(int64(len(l.deleted)))
}

// without takes d out of the list under key.
func without[K comparable](lists map[K][]*deletion, key K, d *deletion) {
	rest := slices.DeleteFunc(lists[key], func(other *deletion) bool { return other == d })
	if len(rest) == 0 {
		delete(lists, key)
		return
	}
	lists[key] = rest
}

const deletionFormat = 1

// Bits of a deletion's second byte.
const (
	deletionMixed = 1 << iota
	deletionPart  // not whole; its first event follows the texts
)

// encodeDeletion is the record of a deletion; its key has the revision.
func encodeDeletion(d *deletion) []byte {
	flags := boolByte(d.mixed)
	if !d.whole {
		flags |= deletionPart
	}
	b := []byte{deletionFormat, flags}
	b = binary.AppendUvarint(b, d.no)
	b = binary.AppendUvarint(b, uint64(d.last))
	b = binary.AppendUvarint(b, uint64(d.at.UnixMicro()))
	for _, text := range [...]string{string(d.uid), d.ns, d.task, d.session} {
		b = binary.AppendUvarint(b, uint64(len(text)))
		b = append(b, text...)
	}
	return binary.AppendUvarint(b, uint64(d.first))
}

func decodeDeletion(k, b []byte) (*deletion, error) {
	if len(k) != len(spaceDeleted)+8 || len(b) < 2 || b[0] != deletionFormat {
		return nil, &CorruptError{append([]byte(nil), k...), errFormat}
	}
	d := &deletion{rev: binary.BigEndian.Uint64(k[2:]), mixed: b[1]&deletionMixed != 0, whole: b[1]&deletionPart == 0, first: 1}
	b = b[2:]
	var numbers [3]uint64
	for i := range numbers {
		v, n := binary.Uvarint(b)
		if n <= 0 {
			return nil, &CorruptError{append([]byte(nil), k...), errShort}
		}
		numbers[i], b = v, b[n:]
	}
	var words [4]string
	for i := range words {
		v, n := binary.Uvarint(b)
		if n <= 0 || v > uint64(len(b)-n) {
			return nil, &CorruptError{append([]byte(nil), k...), errShort}
		}
		words[i], b = string(b[n:n+int(v)]), b[n+int(v):]
	}
	d.identity = identity{numbers[0], types.UID(words[0]), words[1], words[2]}
	d.last, d.at, d.session = int64(numbers[1]), time.UnixMicro(int64(numbers[2])), words[3]
	if len(b) > 0 { // written since events may leave before their stream
		first, n := binary.Uvarint(b)
		if n <= 0 {
			return nil, &CorruptError{append([]byte(nil), k...), errShort}
		}
		d.first = int64(first)
	}
	return d, nil
}

// load reads the floor, which a restored store raises, and the deletions that are not purged.
func (l *Log) load() error {
	floor, _, err := l.number([]byte(spaceFloor))
	if err != nil {
		return err
	}
	l.floor = max(floor, l.engine.Base())
	it, err := l.engine.NewIter([]byte(spaceDeleted), after([]byte(spaceDeleted)))
	if err != nil {
		return err
	}
	for ok := it.First(); ok; ok = it.Next() {
		d, err := decodeDeletion(it.Key(), it.Value())
		if err != nil {
			return errors.Join(err, it.Close())
		}
		l.remember(d)
	}
	return it.Close()
}
