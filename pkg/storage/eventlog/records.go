// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package eventlog

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"

	"k8s.io/utils/lru"

	"github.com/platform-ai/platform/pkg/storage/engine"
)

// records reads what is on disk. The store may show changes that are not published yet, so the caller must
// bound what it uses.
type records struct {
	engine engine.Engine
	idents *lru.Cache // identity by stream number
}

// number reads a value that consists of one number.
func (r *records) number(key []byte) (uint64, bool, error) {
	b, ok, err := r.engine.Get(key)
	if err != nil || !ok {
		return 0, false, err
	}
	if len(b) != 8 {
		return 0, false, &CorruptError{key, errShort}
	}
	return binary.BigEndian.Uint64(b), true, nil
}

// stored reads the head of stream no.
func (r *records) stored(no uint64) (identity, state, bool, error) {
	b, ok, err := r.engine.Get(headKey(no))
	if err != nil || !ok {
		return identity{}, state{}, false, err
	}
	id, s, err := decodeHead(no, b)
	if err == nil {
		s.skips, err = r.skips(no)
	}
	return id, s, err == nil, err
}

// identity returns the identity of stream no, which must exist.
func (r *records) identity(no uint64) (*identity, error) {
	if v, ok := r.idents.Get(no); ok {
		return v.(*identity), nil //nolint:forcetypeassert // only these are put
	}
	id, _, ok, err := r.stored(no)
	if err != nil {
		return nil, err
	}
	if !ok {
		return nil, fmt.Errorf("stream %d: %w", no, ErrNotFound)
	}
	r.idents.Add(no, &id)
	return &id, nil
}

// names reads up to n stream numbers of live streams, by namespace and task, starting at a key. next is the
// key at which to continue, nil at the end.
func (r *records) names(from []byte, n int) (numbers []uint64, next []byte, err error) {
	it, err := r.engine.NewIter(from, after([]byte(spaceName)))
	if err != nil {
		return nil, nil, err
	}
	defer func() { err = errors.Join(err, it.Close()) }()
	for ok := it.First(); ok; ok = it.Next() {
		if len(numbers) == n {
			return numbers, bytes.Clone(it.Key()), nil
		}
		v := it.Value()
		if len(v) != 8 {
			return nil, nil, &CorruptError{bytes.Clone(it.Key()), errShort}
		}
		numbers = append(numbers, binary.BigEndian.Uint64(v))
	}
	return numbers, nil, nil
}

// firstOf returns the header of the first event of a type before a seq; it is zero
// when there is none.
func (r *records) firstOf(no uint64, code uint8, before int64) (h header, err error) {
	it, err := r.engine.NewIter(facetKey(no, code, 1), facetKey(no, code, before))
	if err != nil {
		return header{}, err
	}
	defer func() { err = errors.Join(err, it.Close()) }()
	if !it.First() {
		return header{}, nil
	}
	p, err := parseFacet(it.Key(), it.Value())
	if err != nil {
		return header{}, err
	}
	raw, ok, err := r.engine.Get(dataKey(no, p.seq))
	if err != nil || !ok {
		return header{}, err
	}
	return parseHeader(raw)
}

// seqAfter returns the first seq of stream no, up to last+1, whose revision is at least rev. Revisions grow
// with seq, so it uses binary search.
func (r *records) seqAfter(no uint64, last int64, rev uint64) (int64, error) {
	if rev <= no {
		return 1, nil
	}
	it, err := r.engine.NewIter(dataPrefix(no), after(dataPrefix(no)))
	if err != nil {
		return 0, err
	}
	lo, hi := int64(1), last+1
	for lo < hi && err == nil {
		mid := lo + (hi-lo)/2
		var p posting
		if !it.SeekGE(dataKey(no, mid)) {
			hi = mid
			continue
		}
		if p, err = parseData(it.Key(), it.Value()); err == nil {
			if p.rev >= rev {
				hi = mid
			} else {
				lo = p.seq + 1
			}
		}
	}
	return lo, errors.Join(err, it.Close())
}

// cursorAfter returns the first cursor of a session whose revision is at least rev. Cursors of purged
// events are missing.
func (r *records) cursorAfter(ns, session string, rev uint64) (int64, error) {
	if rev == 0 {
		return 1, nil
	}
	prefix := sessionPrefix(ns, session)
	it, err := r.engine.NewIter(prefix, after(prefix))
	if err != nil {
		return 1, err
	}
	lo, hi := int64(1), int64(1)
	if it.Last() {
		hi = int64(binary.BigEndian.Uint64(it.Key()[len(prefix):])) + 1
	}
	for lo < hi && err == nil {
		mid := lo + (hi-lo)/2
		if !it.SeekGE(sessionKey(ns, session, mid)) {
			hi = mid
			continue
		}
		var p posting
		if p, err = parseSession(it.Key(), it.Value()); err == nil {
			if p.rev >= rev {
				hi = mid
			} else {
				lo = p.cursor + 1
			}
		}
	}
	return lo, errors.Join(err, it.Close())
}
