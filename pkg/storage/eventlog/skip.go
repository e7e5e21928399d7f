// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package eventlog

import (
	"encoding/binary"
	"errors"
	"slices"
)

// A store that is opened without its last writes, or restored from a backup, has forgotten numbers that it gave: readers may know
// events under them. Its engine then has a new Base. The first append to a stream that is older than the base leaves out streamSkip
// seqs, and the first one to a session's timeline sessionSkip cursors. So no number is given twice, and a reader that was ahead gets a gap.
const (
	// streamSkip exceeds the number of events that one stream can have lost: all the logs of a store hold fewer.
	streamSkip = 1 << 20
	// sessionSkip differs, so that what follows a skip never looks like a continuation of what was before it; see neighbours.
	sessionSkip = 2 * streamSkip
)

// skip is a run of seqs that was left out at a base.
type skip struct {
	from, to int64
	base     uint64
}

func skipPrefix(no uint64) []byte { return binary.BigEndian.AppendUint64(key(spaceSkip, 16), no) }

func skipKey(no uint64, to int64) []byte {
	return binary.BigEndian.AppendUint64(skipPrefix(no), uint64(to))
}

// movedKey holds the base at which a session's cursor was moved last.
func movedKey(ns, session string) []byte {
	k := append(key(spaceMoved, len(ns)+len(session)+1), ns...)
	return append(append(k, 0), session...)
}

func (k *skip) encode() []byte {
	return binary.BigEndian.AppendUint64(binary.BigEndian.AppendUint64(nil, uint64(k.from)), k.base)
}

// skips reads what was left out in a stream. Most stores have no base, and so no skips.
func (r *records) skips(no uint64) (list []skip, err error) {
	if r.engine.Base() == 0 {
		return nil, nil
	}
	prefix := skipPrefix(no)
	it, err := r.engine.NewIter(prefix, after(prefix))
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, it.Close()) }()
	for ok := it.First(); ok; ok = it.Next() {
		k, v := it.Key(), it.Value()
		if len(k) != len(prefix)+8 || len(v) != 16 {
			return nil, &CorruptError{slices.Clone(k), errShort}
		}
		list = append(list, skip{
			from: int64(binary.BigEndian.Uint64(v)), to: int64(binary.BigEndian.Uint64(k[len(prefix):])), base: binary.BigEndian.Uint64(v[8:]),
		})
	}
	return list, it.Error()
}

// stale reports whether a cursor is from before the base.
func (r *records) stale(ns, session string) (bool, error) {
	base := r.engine.Base()
	if base == 0 {
		return false, nil
	}
	moved, _, err := r.number(movedKey(ns, session))
	return moved < base, err
}

// skipAt returns what the next event of a stream has to leave out; nil if nothing.
func (h *head) skipAt(base uint64) *skip {
	st := &h.sequenced
	if n := len(st.skips); st.last == 0 || h.no > base || n > 0 && st.skips[n-1].base >= base {
		return nil
	}
	return &skip{from: st.last + 1, to: st.last + streamSkip, base: base}
}

// gaps returns what is missing after one seq and up to another: what was trimmed, and what was left out.
func (s *state) gaps(after, upTo int64) (gaps []Gap) {
	add := func(from, to int64) {
		if from, to = max(from, after+1), min(to, upTo); from <= to {
			gaps = append(gaps, Gap{from, to})
		}
	}
	add(1, s.oldest-1)
	for _, k := range s.skips {
		add(max(k.from, s.oldest), k.to)
	}
	return gaps
}

// numbered returns how many of these seqs were given.
func (s *state) numbered(first, last int64) int64 {
	n := last - first + 1
	for _, k := range s.skips {
		n -= max(min(k.to, last)-max(k.from, first)+1, 0)
	}
	return n
}

// given returns the first seq at or after one that was given.
func (s *state) given(seq int64) int64 {
	for _, k := range s.skips {
		if k.from <= seq && seq <= k.to {
			return k.to + 1
		}
	}
	return seq
}
