// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package eventlog

import (
	"context"
	"encoding/binary"
	"errors"

	"github.com/platform-ai/platform/pkg/storage/engine"
)

// An older version wrote streams without counts. Its events are those before state.counted; they are counted when the
// counts of the stream are first asked for. Their marks begin at 0 with the oldest event that was kept then. The last of
// them, at state.counted-1, is what all later counts are added to.

// olderChunk is how many events one batch of marks covers.
const olderChunk = 256 * markEvery

// countOlder sets closing. It writes the marks of events that were not counted, in chunks; what one call wrote, the
// next one does not repeat.
func (c *counting) countOlder(ctx context.Context) error {
	if c.counted <= c.oldest {
		return nil
	}
	c.older.Lock() // two requests would do the same work
	defer c.older.Unlock()
	at, err := c.lastOlder()
	for err == nil && at.seq < c.counted-1 {
		if err = ctx.Err(); err == nil {
			at, err = c.chunk(at, min(at.seq+olderChunk, c.counted-1))
		}
	}
	c.closing = at.counts
	return err
}

// lastOlder returns the last mark of the events that were not counted when they were stored.
func (c *counting) lastOlder() (m mark, err error) {
	it, err := c.engine.NewIter(markKey(c.no, c.oldest), markKey(c.no, c.counted))
	if err != nil {
		return mark{}, err
	}
	defer func() { err = errors.Join(err, it.Close()) }()
	if !it.Last() {
		return mark{seq: c.oldest - 1}, it.Error()
	}
	return parseMark(it.Key(), it.Value())
}

// chunk counts the events after a mark up to last, by the index of types, and writes their marks. It returns the last
// one.
func (c *counting) chunk(at mark, last int64) (mark, error) {
	parts := make([]tally, last/markEvery-at.seq/markEvery+1) // by seq/markEvery, so that a part ends before its mark
	begin := at.seq / markEvery
	for code := 1; code < len(typeNames); code++ {
		if err := c.facet(uint8(code), at.seq+1, last, func(p posting) {
			parts[(p.seq-1)/markEvery-begin].count(p.typ, p.sev, 1)
		}); err != nil {
			return mark{}, err
		}
	}
	b, err := c.engine.NewBatch()
	if err != nil {
		return mark{}, err
	}
	for i := range parts {
		seq := min((begin+int64(i)+1)*markEvery, last)
		if seq <= at.seq {
			continue
		}
		h, err := c.headerOf(seq)
		if err == nil {
			at.seq, at.created = seq, h.created
			at.counts.plus(&parts[i], 1)
			err = b.Set(markKey(c.no, seq), encodeMark(h.created, &at.counts))
		}
		if err != nil {
			b.Discard()
			return mark{}, err
		}
	}
	if err := c.engine.Apply(b, engine.NoSync); err != nil {
		return mark{}, err
	}
	return at, c.dropIfPurged()
}

// facet calls f with the entries of one facet from first to last.
func (c *counting) facet(f facet, first, last int64, each func(posting)) (err error) {
	it, err := c.engine.NewIter(facetKey(c.no, f, first), facetKey(c.no, f, last+1))
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, it.Close()) }()
	for ok := it.First(); ok; ok = it.Next() {
		p, err := parseFacet(it.Key(), it.Value())
		if err != nil {
			return err
		}
		each(p)
	}
	return it.Error()
}

// dropIfPurged removes the marks again if the stream was purged meanwhile, since nothing else would.
func (c *counting) dropIfPurged() error {
	if _, ok, err := c.engine.Get(headKey(c.no)); ok || err != nil {
		return err
	}
	b, err := c.engine.NewBatch()
	if err != nil {
		return err
	}
	if err := b.DeleteRange(markPrefix(c.no), after(markPrefix(c.no))); err != nil {
		b.Discard()
		return err
	}
	return errors.Join(c.engine.Apply(b, engine.NoSync), ErrDeleted)
}

func markPrefix(no uint64) []byte { return binary.BigEndian.AppendUint64(key(spaceMark, 16), no) }

func markKey(no uint64, seq int64) []byte {
	return binary.BigEndian.AppendUint64(markPrefix(no), uint64(seq))
}
