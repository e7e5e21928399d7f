// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package eventlog

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/platform-ai/platform/pkg/apis/core/v1alpha1"
)

// Counts are how many events of a stream are kept.
type Counts struct {
	Head Head
	// Total is the number of the selected events.
	Total int64
	// Types and Severities are the numbers of all events, selected or not.
	Types      map[v1alpha1.EventType]int64
	Severities map[v1alpha1.EventSeverity]int64
	// First and Last are the times of the oldest and the newest event.
	First, Last time.Time
	// Buckets divide the time from First to Last evenly, without those that have no selected event.
	Buckets []Bucket
	// Approximate is set if the bounds of some buckets fall between two marks that were not divided exactly. Up to
	// 255 events around such a bound may be counted in the neighbouring bucket. Sums are exact.
	Approximate bool
}

// Bucket counts the events of a period.
type Bucket struct {
	From, To time.Time
	// Seq is the seq of about the first event: it is exact unless the counts are approximate.
	Seq        int64
	Total      int64
	Types      map[v1alpha1.EventType]int64
	Severities map[v1alpha1.EventSeverity]int64
}

// MaxBuckets is how many buckets Count makes at most.
const MaxBuckets = 500

// Count counts the kept events of a stream. Total and buckets count those of the types, or all if there are none. The
// cost does not depend on the length of the stream: the head has the totals, and one mark for 256 events has what was
// counted up to it. Head and marks are written in the batch of the events. A stream that an older version wrote is counted once,
// when this is first asked.
//
// Buckets are made from the times of about maxMarks marks at most. Where the bound of a bucket falls between two of them, it is
// found by binary search, and the index of types is counted on both sides of it (splitter), for exactEvents events at most. The
// rest is divided by time, and the counts are then approximate.
func (r *Reader) Count(ctx context.Context, s Stream, types []v1alpha1.EventType, buckets int) (*Counts, error) {
	f, err := newFilter(&Query{Namespace: s.Namespace, Types: types})
	if err != nil {
		return nil, fmt.Errorf("count events of %s: %w", s, err)
	}
	c, err := unpurged(r.shared, func() (*Counts, error) {
		v, ok, err := r.byUID(s.UID)
		switch {
		case err != nil:
			return nil, err
		case !ok:
			return &Counts{Types: map[v1alpha1.EventType]int64{}, Severities: map[v1alpha1.EventSeverity]int64{}}, nil
		case v.deleted != 0:
			return nil, ErrDeleted
		}
		return count(ctx, &counting{shared: r.shared, view: v}, f, min(buckets, MaxBuckets))
	})
	if err != nil {
		return nil, fmt.Errorf("count events of %s: %w", s, err)
	}
	return c, nil
}

// counting counts the events of a stream as it was published.
type counting struct {
	*shared
	view
	// closing counts the events before state.counted; see uncounted.
	closing tally
}

func count(ctx context.Context, c *counting, f *filter, buckets int) (*Counts, error) {
	out := &Counts{Head: c.head()}
	if err := c.countOlder(ctx); err != nil {
		return nil, err
	}
	first, last, err := c.ends()
	if err != nil {
		return nil, err
	}
	out.First, out.Last = time.UnixMicro(first.created), time.UnixMicro(last.created)
	kept := last.counts
	kept.plus(&first.counts, -1)
	out.Total = kept.total(f.types)
	out.Types, out.Severities = kept.split()
	if buckets <= 0 {
		return out, nil
	}
	points, err := c.points(first, last)
	if err != nil {
		return nil, err
	}
	return out, c.divide(out, f, points, buckets)
}

// ends returns what was counted before the oldest kept event, with its time, and up to the newest.
func (c *counting) ends() (first, last mark, err error) {
	if last.counts, err = parseTally(c.view.counts); err != nil {
		return mark{}, mark{}, err
	}
	last.counts.plus(&c.closing, 1)
	first.seq, last.seq = c.oldest-1, c.last
	for _, m := range []*mark{&first, &last} {
		h, err := c.headerOf(max(m.seq, c.oldest))
		if err != nil {
			return mark{}, mark{}, err
		}
		m.created = h.created
	}
	if c.oldest == 1 {
		return first, last, nil
	}
	next, ok, err := c.markFrom(c.oldest)
	if err != nil {
		return mark{}, mark{}, err
	}
	if !ok {
		next = last
	}
	first.counts = next.counts
	err = c.each(c.oldest, next.seq, func(_ int64, h header) { first.counts.count(h.typ, h.sev, -1) })
	return first, last, err
}

// headerOf reads the header of an event.
func (c *counting) headerOf(seq int64) (header, error) {
	raw, ok, err := c.engine.Get(dataKey(c.no, seq))
	switch {
	case err != nil:
		return header{}, err
	case !ok:
		return header{}, &CorruptError{dataKey(c.no, seq), ErrNotFound}
	}
	return parseHeader(raw)
}

// each calls f with each event from first to last.
func (c *counting) each(first, last int64, f func(seq int64, h header)) (err error) {
	it, err := c.engine.NewIter(dataKey(c.no, first), dataKey(c.no, last+1))
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, it.Close()) }()
	for ok := it.First(); ok; ok = it.Next() {
		p, err := parseData(it.Key(), it.Value())
		if err != nil {
			return err
		}
		h, err := parseHeader(p.raw)
		if err != nil {
			return err
		}
		f(p.seq, h)
	}
	return it.Error()
}
