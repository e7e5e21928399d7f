// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package recording

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"errors"
	"slices"

	"k8s.io/apimachinery/pkg/types"

	"github.com/platform-ai/platform/pkg/apis/core/v1alpha1"
	"github.com/platform-ai/platform/pkg/storage/engine"
	"github.com/platform-ai/platform/pkg/storage/owned"
)

// maxLooked bounds how many entries are looked at for one page of some types.
const maxLooked = 100_000

// Page returns the recorded events of a task after a seq, at most limit of them, without content, and the bytes that are kept of it. Of
// types, if there are some, only those. next is the seq to go on after, also where nothing was found so far; 0 if there are no more.
func (s *Store) Page(ctx context.Context, uid types.UID, after int64, limit int, of ...v1alpha1.EventType) (page []v1alpha1.RecordedEntry, kept, next int64, err error) {
	page = []v1alpha1.RecordedEntry{}
	if kept, _, err = s.row(uid); err != nil {
		return nil, 0, 0, err
	}
	last, looked := after, 0
	err = s.each(ctx, uid, after+1, func(seq int64, e *entry) bool {
		if len(page) == limit || looked == maxLooked {
			next = last
			return false
		}
		last = seq
		looked++
		if len(of) == 0 || slices.Contains(of, e.Type) {
			page = append(page, *brief(seq, e))
		}
		return true
	})
	return page, kept, next, err
}

// Before returns the recorded events of a task after one seq and before another, as Page does, the newest first. prev is the seq before
// which they go on; 0 if there are no more.
func (s *Store) Before(ctx context.Context, uid types.UID, after, before int64, limit int) (page []v1alpha1.RecordedEntry, kept, prev int64, err error) {
	page = []v1alpha1.RecordedEntry{}
	if kept, _, err = s.row(uid); err != nil || owned.Bad(string(uid)) || before <= after {
		return page, kept, 0, err
	}
	it, err := s.engine.NewIter(entryKey(uid, after+1), entryKey(uid, before))
	if err != nil {
		return nil, 0, 0, err
	}
	defer func() { err = errors.Join(err, it.Close()) }()
	for ok := it.Last(); ok; ok = it.Prev() {
		if len(page) == limit {
			prev = page[limit-1].Seq
			break
		}
		seq, e, err := entryAt(it)
		if err != nil || ctx.Err() != nil {
			return nil, 0, 0, errors.Join(err, ctx.Err())
		}
		page = append(page, *brief(seq, e))
	}
	return page, kept, prev, it.Error()
}

func brief(seq int64, e *entry) *v1alpha1.RecordedEntry {
	return &v1alpha1.RecordedEntry{Seq: seq, Type: e.Type, Attempt: e.Attempt}
}

// entryAt returns the row that an iterator is at.
func entryAt(it engine.Iter) (int64, *entry, error) {
	var e entry
	key := it.Key()
	if len(key) < 8 || json.Unmarshal(it.Value(), &e) != nil {
		return 0, nil, errors.Join(&CorruptError{append([]byte(nil), key...)}, it.Error())
	}
	return int64(binary.BigEndian.Uint64(key[len(key)-8:])), &e, nil
}

// each calls f with each recorded event from a seq on, until f returns false.
func (s *Store) each(ctx context.Context, uid types.UID, from int64, f func(seq int64, e *entry) bool) (err error) {
	if owned.Bad(string(uid)) {
		return nil
	}
	it, err := s.engine.NewIter(entryKey(uid, from), owned.After(space.Key(uid, kindEntry)))
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, it.Close()) }()
	for ok := it.First(); ok; ok = it.Next() {
		seq, e, err := entryAt(it)
		if err != nil || !f(seq, e) || ctx.Err() != nil {
			return errors.Join(err, ctx.Err())
		}
	}
	return it.Error()
}

// place is where a part is.
type place struct {
	seq int64
	i   int32
}

// places are the parts of an attempt by their numbers.
type places map[int32]place

// Entry returns what is recorded beside an event, with its content; nil if nothing is.
func (s *Store) Entry(ctx context.Context, uid types.UID, seq int64) (*v1alpha1.RecordedEntry, error) {
	if owned.Bad(string(uid)) || seq < 1 {
		return nil, nil //nolint:nilnil // as documented
	}
	raw, ok, err := s.engine.Get(entryKey(uid, seq))
	if err != nil || !ok {
		return nil, err
	}
	var e entry
	if json.Unmarshal(raw, &e) != nil {
		return nil, &CorruptError{entryKey(uid, seq)}
	}
	at, err := s.places(ctx, uid, seq, &e)
	if err != nil {
		return nil, err
	}
	return s.resolve(uid, seq, &e, at)
}

// places returns where the parts are that an entry names.
func (s *Store) places(ctx context.Context, uid types.UID, seq int64, e *entry) (places, error) {
	at := places{}
	if _, known, err := s.engine.Get(numbersKey(uid, attempt(e.Attempt), 0)); err != nil || known {
		if err == nil {
			err = s.find(at, uid, seq, e)
		}
		return at, err
	}
	err := s.each(ctx, uid, 1, func(n int64, other *entry) bool {
		if n > seq {
			return false
		}
		if other.Attempt == e.Attempt {
			for i := range other.N {
				if _, known := at[other.First+i]; !known {
					at[other.First+i] = place{n, i}
				}
			}
		}
		return true
	})
	return at, err
}

// find looks the numbers of an entry up by the rows of numbers, as far as they came up to its event.
func (s *Store) find(at places, uid types.UID, seq int64, e *entry) (err error) {
	it, err := s.engine.NewIter(numbersKey(uid, attempt(e.Attempt), 0), numbersKey(uid, attempt(e.Attempt+1), 0))
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, it.Close()) }()
	var named []v1alpha1.RecordedRange
	for _, one := range []*int32{e.Tools, e.Message} {
		if one != nil {
			named = append(named, v1alpha1.RecordedRange{From: *one, To: *one})
		}
	}
	for _, r := range append(named, e.Conversation...) {
		if r.From < 0 {
			continue
		}
		from := numbersKey(uid, attempt(e.Attempt), r.From)
		for ok := it.SeekGE(from) && bytes.Equal(it.Key(), from) || it.SeekLT(from); ok && len(at) < maxConversation; ok = it.Next() {
			row, err := numbersAt(it)
			if err != nil {
				return err
			}
			if row.first > r.To || row.seq > seq {
				break
			}
			for i := max(0, r.From-row.first); i < row.n && row.first+i <= r.To; i++ {
				at[row.first+i] = place{row.seq, i}
			}
		}
	}
	return it.Error()
}

// Known returns the numbers of at most limit parts that are kept of an attempt, by their digests, and the number after the highest that
// came. Whoever numbers the parts of the attempt goes on from there after a restart.
func (s *Store) Known(ctx context.Context, uid types.UID, of int32, limit int) (next int32, known map[[sha256.Size]byte]int32, err error) {
	known = map[[sha256.Size]byte]int32{}
	if owned.Bad(string(uid)) {
		return 0, known, nil
	}
	it, err := s.engine.NewIter(numbersKey(uid, attempt(of), 0), numbersKey(uid, attempt(of+1), 0))
	if err != nil {
		return 0, nil, err
	}
	defer func() { err = errors.Join(err, it.Close()) }()
	for ok := it.First(); ok; ok = it.Next() {
		row, err := numbersAt(it)
		if err != nil || ctx.Err() != nil {
			return 0, nil, errors.Join(err, ctx.Err())
		}
		next = row.first + row.n
		for i := int32(0); i < row.n && len(known) < limit; i++ {
			p, err := s.part(uid, row.first+i, places{row.first + i: {row.seq, i}})
			if err != nil {
				return 0, nil, err
			}
			if d, err := hex.DecodeString(p.Digest); err == nil && len(d) == sha256.Size {
				known[[sha256.Size]byte(d)] = row.first + i
			}
		}
	}
	return next, known, it.Error()
}

// resolve reads the parts that an entry names.
func (s *Store) resolve(uid types.UID, seq int64, e *entry, at places) (*v1alpha1.RecordedEntry, error) {
	out := &v1alpha1.RecordedEntry{Seq: seq, Type: e.Type, Attempt: e.Attempt, Parameters: e.Parameters}
	left := int64(maxAnswer)
	for _, r := range e.Conversation {
		for n := r.From; n <= r.To && len(out.Conversation) < maxConversation; n++ {
			p, err := s.part(uid, n, at)
			if err != nil {
				return nil, err
			}
			if p.Omitted == "" { // otherwise the worker may have chosen the size
				left -= p.Bytes
			}
			if left < 0 {
				p = omit(p, TooLarge)
			}
			out.Conversation = append(out.Conversation, *p)
		}
	}
	for _, one := range []struct {
		number *int32
		to     **v1alpha1.RecordedPart
	}{{e.Tools, &out.Tools}, {e.Message, &out.Message}} {
		if one.number == nil {
			continue
		}
		p, err := s.part(uid, *one.number, at)
		if err != nil {
			return nil, err
		}
		*one.to = p
	}
	if e.ToolCallID != "" {
		out.ToolCall = callOf(out.Message, e.ToolCallID)
	}
	return out, nil
}

// maxConversation bounds how many messages are shown of one request, and maxAnswer their bytes, whatever ranges a worker names.
const (
	maxConversation = 20_000
	maxAnswer       = 32 << 20
)

// callOf returns the call with an id in a message.
func callOf(p *v1alpha1.RecordedPart, id string) *v1alpha1.RecordedToolCall {
	if p == nil || p.Message == nil {
		return nil
	}
	for i := range p.Message.ToolCalls {
		if c := &p.Message.ToolCalls[i]; c.ID == id {
			return c
		}
	}
	return nil
}

// part reads a part by its number.
func (s *Store) part(uid types.UID, n int32, at places) (*v1alpha1.RecordedPart, error) {
	where, ok := at[n]
	if !ok {
		return &v1alpha1.RecordedPart{Omitted: Missing}, nil
	}
	raw, ok, err := s.engine.Get(partKey(uid, where.seq, where.i))
	if err != nil {
		return nil, err
	}
	if !ok {
		return &v1alpha1.RecordedPart{Omitted: Missing}, nil
	}
	var p v1alpha1.RecordedPart
	if json.Unmarshal(raw, &p) != nil {
		return nil, &CorruptError{partKey(uid, where.seq, where.i)}
	}
	return &p, nil
}
