// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package recording

import (
	"context"
	"encoding/binary"
	"encoding/json"
	"errors"

	"k8s.io/apimachinery/pkg/types"

	"github.com/platform-ai/platform/pkg/apis/core/v1alpha1"
	"github.com/platform-ai/platform/pkg/storage/owned"
)

// Page returns the recorded events of a task after a seq, at most limit of them, without content, and the bytes that are kept of it.
// next is the seq to go on after; 0 if there are no more.
func (s *Store) Page(ctx context.Context, uid types.UID, after int64, limit int) (page []v1alpha1.RecordedEntry, bytes, next int64, err error) {
	page = []v1alpha1.RecordedEntry{}
	if bytes, _, err = s.row(uid); err != nil {
		return nil, 0, 0, err
	}
	err = s.each(ctx, uid, after+1, func(seq int64, e *entry) bool {
		if len(page) == limit {
			next = page[limit-1].Seq
			return false
		}
		page = append(page, v1alpha1.RecordedEntry{Seq: seq, Type: e.Type, Attempt: e.Attempt})
		return true
	})
	return page, bytes, next, err
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
		var e entry
		key := it.Key()
		if len(key) < 8 || json.Unmarshal(it.Value(), &e) != nil {
			return &CorruptError{append([]byte(nil), key...)}
		}
		if !f(int64(binary.BigEndian.Uint64(key[len(key)-8:])), &e) || ctx.Err() != nil {
			return ctx.Err()
		}
	}
	return nil
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
	at := places{}
	err = s.each(ctx, uid, 1, func(n int64, other *entry) bool {
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
	if err != nil {
		return nil, err
	}
	return s.resolve(uid, seq, &e, at)
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
