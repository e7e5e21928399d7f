// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package eventlog

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/platform-ai/platform/pkg/storage/engine"
)

// deletion tells that a stream left: event seq at revision rev+seq-1.
type deletion struct {
	identity
	rev     uint64
	last    int64     // the events are 1 to last
	at      time.Time // for the window of history
	session string
	mixed   bool // other sessions too
}

// of returns the revision at which event seq left.
func (d *deletion) of(seq int64) uint64 { return d.rev + uint64(seq) - 1 }

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
	return nil
}

type deleteTxn struct {
	log     *Log
	stream  Stream
	deleted *deletion // nil: there was nothing to do
}

// Sequence runs on the commit leader.
func (t *deleteTxn) Sequence(b *engine.Batch) error {
	h, err := t.log.sequencedHead(t.stream)
	if err != nil || h == nil || h.sequenced.deleted != 0 {
		return err
	}
	if t.deleted, err = t.log.sequenceDelete(b, h); err != nil {
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

// sequenceDelete assigns a revision to each event of a live stream and writes
// the one record of them all. The name is the caller's to write.
func (l *Log) sequenceDelete(b *engine.Batch, h *head) (*deletion, error) {
	st := h.sequenced
	d := &deletion{
		identity: h.identity, last: st.last, at: l.opts.Clock.Now(), session: st.session, mixed: st.mixed,
	}
	for i := range st.last {
		rev := b.Next()
		if i == 0 {
			d.rev = rev
		}
		st.changed = rev
	}
	st.deleted = d.rev
	var w writer
	w.set(b, headKey(h.no), encodeHead(&h.identity, &st))
	w.set(b, deletedKey(d.rev), encodeDeletion(d))
	if w.err != nil {
		return nil, w.err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	h.sequenced = st
	h.inflight++
	l.heads.rename(taskName{h.ns, h.task}, nil)
	return d, nil
}

// publishDelete makes a deletion visible; mu is held.
func (l *Log) publishDelete(d *deletion) {
	name := taskName{d.ns, d.task}
	if h := l.heads.streams[d.uid]; h != nil && h.no == d.no {
		h.published.deleted, h.published.changed = d.rev, d.end()
		h.inflight--
		if l.heads.live[name] == h {
			delete(l.heads.live, name)
		}
	}
	l.heads.renamed(name)
	l.remember(d)
	l.deliver(&entry{posting: posting{rev: d.rev, no: d.no, seq: d.last}, id: &d.identity, session: d.session, gone: d})
}

// remember notes a deletion for readers; mu is held or not needed yet.
func (l *Log) remember(d *deletion) {
	name := taskName{d.ns, d.task}
	l.deleted[d.no] = d
	l.byName[name] = append(l.byName[name], d)
}

// forget undoes remember; mu is held.
func (l *Log) forget(d *deletion) {
	name := taskName{d.ns, d.task}
	delete(l.deleted, d.no)
	l.forgotten++
	var rest []*deletion
	for _, other := range l.byName[name] {
		if other.no != d.no {
			rest = append(rest, other)
		}
	}
	if rest == nil {
		delete(l.byName, name)
		return
	}
	l.byName[name] = rest
}

const deletionFormat = 1

// encodeDeletion is the record of a deletion; its key has the revision.
func encodeDeletion(d *deletion) []byte {
	b := []byte{deletionFormat, boolByte(d.mixed)}
	b = binary.AppendUvarint(b, d.no)
	b = binary.AppendUvarint(b, uint64(d.last))
	b = binary.AppendUvarint(b, uint64(d.at.UnixMicro()))
	for _, text := range [...]string{string(d.uid), d.ns, d.task, d.session} {
		b = binary.AppendUvarint(b, uint64(len(text)))
		b = append(b, text...)
	}
	return b
}

func decodeDeletion(k, b []byte) (*deletion, error) {
	if len(k) != len(spaceDeleted)+8 || len(b) < 2 || b[0] != deletionFormat {
		return nil, &CorruptError{append([]byte(nil), k...), errFormat}
	}
	d := &deletion{rev: binary.BigEndian.Uint64(k[2:]), mixed: b[1] != 0}
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
	return d, nil
}

// load reads the floor and the deletions that are not purged.
func (l *Log) load() error {
	floor, _, err := l.number([]byte(spaceFloor))
	if err != nil {
		return err
	}
	l.floor = floor
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
