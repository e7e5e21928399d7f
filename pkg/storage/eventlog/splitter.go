// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package eventlog

import (
	"errors"
	"slices"
	"sort"

	"github.com/platform-ai/platform/pkg/storage/engine"
)

// splitter divides the events between two marks exactly. It looks for the first event of each bucket by binary search, so it reads
// few events, and counts by the index of types, whose entries are small.
type splitter struct {
	*counting
	*division
	data, index engine.Iter // nil until they are needed
}

// piece is the events of one bucket, up to a seq.
type piece struct {
	bucket int
	last   int64
	counts tally
}

// split divides the events from first to last, of which counts are the sums. If the clock was set back among them, some are
// counted in a neighbouring bucket.
func (s *splitter) split(first, last int64, counts *tally) error {
	var pieces []piece
	for at := first; at <= last; {
		bucket, err := s.bucketOf(at)
		if err != nil {
			return err
		}
		n := sort.Search(int(last-at), func(i int) bool {
			b, problem := s.bucketOf(at + 1 + int64(i))
			err = errors.Join(err, problem)
			return b > bucket
		})
		if err != nil {
			return err
		}
		at += int64(n) + 1
		pieces = append(pieces, piece{bucket: bucket, last: at - 1})
	}
	if len(pieces) == 1 {
		pieces[0].counts = *counts
	} else if err := s.count(pieces, first, last, counts); err != nil {
		return err
	}
	for i := range pieces {
		s.add(pieces[i].bucket, first, &pieces[i].counts)
		first = pieces[i].last + 1
	}
	return nil
}

// bucketOf returns the bucket of an event; of a seq that was left out, that of the next event.
func (s *splitter) bucketOf(seq int64) (bucket int, err error) {
	k := dataKey(s.no, s.given(seq))
	if s.data == nil {
		if s.data, err = s.engine.NewIter(dataKey(s.no, s.oldest), dataKey(s.no, s.last+1)); err != nil {
			return 0, err
		}
	}
	if !s.data.SeekGE(k) || string(s.data.Key()) != string(k) {
		return 0, errors.Join(&CorruptError{k, ErrNotFound}, s.data.Error())
	}
	h, err := parseHeader(s.data.Value())
	return s.of(h.created), err
}

// count counts the events of each piece. Only types that counts has occur.
func (s *splitter) count(pieces []piece, first, last int64, counts *tally) (err error) {
	if s.index == nil {
		if s.index, err = s.engine.NewIter(facetKey(s.no, 0, 0), facetKey(s.no, facetSeverity, 0)); err != nil {
			return err
		}
	}
	for code := range typeNames {
		if counts[code] == 0 {
			continue
		}
		end := facetKey(s.no, uint8(code), last+1)
		for ok := s.index.SeekGE(facetKey(s.no, uint8(code), first)); ok && string(s.index.Key()) < string(end); ok = s.index.Next() {
			p, err := parseFacet(s.index.Key(), s.index.Value())
			if err != nil {
				return err
			}
			at, _ := slices.BinarySearchFunc(pieces, p.seq, func(x piece, seq int64) int { return int(x.last - seq) })
			pieces[at].counts.count(p.typ, p.sev, 1)
		}
	}
	return s.index.Error()
}

func (s *splitter) close() (err error) {
	for _, it := range []engine.Iter{s.data, s.index} {
		if it != nil {
			err = errors.Join(err, it.Close())
		}
	}
	return err
}
