// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package eventlog

import "errors"

// maxMarks is about how many marks one count reads. Of a longer stream it reads every second one, or every third.
const maxMarks = 4096

// markFrom returns the first mark at or after a seq.
func (c *counting) markFrom(seq int64) (m mark, ok bool, err error) {
	it, err := c.engine.NewIter(markKey(c.no, seq), markKey(c.no, c.last+1))
	if err != nil {
		return mark{}, false, err
	}
	defer func() { err = errors.Join(err, it.Close()) }()
	if !it.First() {
		return mark{}, false, it.Error()
	}
	m, err = c.parse(it.Key(), it.Value())
	return m, err == nil, err
}

// upTo returns what was counted up to an event that has a mark, or up to the newest. Before the first there is nothing.
func (c *counting) upTo(seq int64) (tally, error) {
	switch seq {
	case 0:
		return tally{}, nil
	case c.last:
		t, err := parseTally(c.view.counts)
		t.plus(&c.closing, 1)
		return t, err
	}
	k := markKey(c.no, seq)
	v, ok, err := c.engine.Get(k)
	switch {
	case err != nil:
		return tally{}, err
	case !ok:
		return tally{}, &CorruptError{k, ErrNotFound}
	}
	m, err := c.parse(k, v)
	return m.counts, err
}

// parse parses a mark and adds what was counted before counting began.
func (c *counting) parse(k, v []byte) (mark, error) {
	m, err := parseMark(k, v)
	if m.seq >= c.counted {
		m.counts.plus(&c.closing, 1)
	}
	return m, err
}

// point is a mark whose counts are decoded when they are needed: a count looks at the times of all marks, and at the counts
// of those beside the bounds of buckets.
type point struct {
	seq, created int64
	raw          []byte // of the mark
	counts       *tally // instead of raw
}

// between returns what was counted after one point up to another.
func (c *counting) between(a, b *point) (tally, error) {
	difference, err := c.countsOf(b)
	if err != nil {
		return tally{}, err
	}
	before, err := c.countsOf(a)
	difference.plus(&before, -1)
	return difference, err
}

func (c *counting) countsOf(p *point) (tally, error) {
	if p.counts != nil {
		return *p.counts, nil
	}
	m, err := c.parse(markKey(c.no, p.seq), p.raw)
	return m.counts, err
}

// points returns the marks between two of them, with both.
func (c *counting) points(first, last mark) (list []point, err error) {
	list = append(make([]point, 0, min((last.seq-first.seq)/markEvery, maxMarks)+4), point{seq: first.seq, created: first.created, counts: &first.counts})
	end := point{seq: last.seq, created: last.created, counts: &last.counts}
	if every := ((last.seq-first.seq)/markEvery + maxMarks) / maxMarks; every > 1 {
		list, err = c.some(list, last.seq, every*markEvery)
		return append(list, end), err
	}
	it, err := c.engine.NewIter(markKey(c.no, first.seq+1), markKey(c.no, last.seq))
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, it.Close()) }()
	var copies []byte
	for ok := it.First(); ok; ok = it.Next() {
		p, err := pointOf(it.Key(), it.Value())
		if err != nil {
			return nil, err
		}
		if cap(copies)-len(copies) < len(p.raw) {
			copies = make([]byte, 0, 1<<14+len(p.raw))
		}
		n := len(copies)
		copies = append(copies, p.raw...)
		p.raw = copies[n:]
		list = append(list, p)
	}
	return append(list, end), it.Error()
}

// some adds to list the marks at multiples of step that are before last.
func (c *counting) some(list []point, last, step int64) ([]point, error) {
	for seq := list[0].seq/step*step + step; seq < last; seq += step {
		k := markKey(c.no, seq)
		v, ok, err := c.engine.Get(k)
		if err != nil {
			return nil, err
		}
		if !ok && c.given(seq) != seq {
			continue
		}
		if !ok {
			return nil, &CorruptError{k, ErrNotFound}
		}
		p, err := pointOf(k, v)
		if err != nil {
			return nil, err
		}
		list = append(list, p)
	}
	return list, nil
}
