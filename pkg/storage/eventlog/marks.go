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

// parse parses a mark and adds what was counted before counting began.
func (c *counting) parse(k, v []byte) (mark, error) {
	m, err := parseMark(k, v)
	if m.seq >= c.counted {
		m.counts.plus(&c.closing, 1)
	}
	return m, err
}

// marks returns the marks between two of them, with both.
func (c *counting) marks(first, last mark) (list []mark, err error) {
	list = append(make([]mark, 0, min((last.seq-first.seq)/markEvery, maxMarks)+4), first)
	if every := ((last.seq-first.seq)/markEvery + maxMarks) / maxMarks; every > 1 {
		list, err = c.some(list, last.seq, every*markEvery)
		return append(list, last), err
	}
	it, err := c.engine.NewIter(markKey(c.no, first.seq+1), markKey(c.no, last.seq))
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, it.Close()) }()
	for ok := it.First(); ok; ok = it.Next() {
		m, err := c.parse(it.Key(), it.Value())
		if err != nil {
			return nil, err
		}
		list = append(list, m)
	}
	return append(list, last), it.Error()
}

// some adds to list the marks at multiples of step that are before last.
func (c *counting) some(list []mark, last, step int64) ([]mark, error) {
	for seq := list[0].seq/step*step + step; seq < last; seq += step {
		k := markKey(c.no, seq)
		v, ok, err := c.engine.Get(k)
		if err != nil {
			return nil, err
		}
		if !ok {
			return nil, &CorruptError{k, ErrNotFound}
		}
		m, err := c.parse(k, v)
		if err != nil {
			return nil, err
		}
		list = append(list, m)
	}
	return list, nil
}
