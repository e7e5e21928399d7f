// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package transcript

import (
	"context"
	"errors"
	"fmt"

	"k8s.io/apimachinery/pkg/types"

	"github.com/platform-ai/platform/pkg/apis/core/v1alpha1"
	"github.com/platform-ai/platform/pkg/storage/engine"
	"github.com/platform-ai/platform/pkg/storage/owned"
)

// Append adds messages to the end of a session's transcript, all or none. It returns them as stored:
// without secrets, with id, order and time. A message whose id is already stored is not stored again: its
// first order and time are returned, or ErrTaken if its content differs. Append ignores the order and time
// that the caller set.
//
// If the transcript is then longer than limit bytes, its oldest messages are removed. The first message of
// the user and the newest message always stay. A limit of 0 or less means no limit.
//
// Append returns when everything is durable. The messages of an unnamed session cannot be searched.
func (s *Store) Append(ctx context.Context, uid types.UID, limit int64, messages []v1alpha1.SessionMessage) ([]v1alpha1.SessionMessage, error) {
	return s.AppendTo(ctx, Session{UID: uid}, limit, messages)
}

// AppendTo is Append for a session whose messages can be searched.
func (s *Store) AppendTo(ctx context.Context, to Session, limit int64, messages []v1alpha1.SessionMessage) ([]v1alpha1.SessionMessage, error) {
	uid := to.UID
	if owned.Bad(string(uid)) {
		return nil, fmt.Errorf("append: %w", ErrName)
	}
	a := &addition{store: s, uid: uid, session: to, limit: limit, ids: map[string]entry{}}
	if err := a.prepare(messages); err != nil {
		return nil, err
	}
	l := s.lock(uid)
	l.Lock()
	defer l.Unlock()
	if err := a.place(); err != nil {
		return nil, err
	}
	if len(a.fresh) > 0 {
		if err := s.write(ctx, engine.Upkeep, a.fill); err != nil {
			return nil, fmt.Errorf("append: %w", err)
		}
	}
	return a.messages, nil
}

// addition is one Append.
type addition struct {
	store    *Store
	uid      types.UID
	session  Session
	limit    int64
	messages []v1alpha1.SessionMessage
	digests  [][digestLen]byte
	chosen   []bool // the id is the caller's

	before head
	upto   *indexed         // nil if the new messages are not indexed
	ids    map[string]entry // of this addition
	fresh  []int            // places of the messages that are not stored yet
}

// prepare does the work that needs no lock.
func (a *addition) prepare(messages []v1alpha1.SessionMessage) error {
	a.messages = make([]v1alpha1.SessionMessage, len(messages))
	a.digests, a.chosen = make([][digestLen]byte, len(messages)), make([]bool, len(messages))
	for i := range messages {
		m := &a.messages[i]
		messages[i].DeepCopyInto(m)
		if a.chosen[i] = m.ID != ""; !a.chosen[i] {
			m.ID = a.store.newID()
		} else if err := checkID(m.ID); err != nil {
			return err
		}
		sanitize(m)
		var err error
		if a.digests[i], err = digest(m); err != nil {
			return err
		}
	}
	return nil
}

// place gives each message its order and time.
func (a *addition) place() (err error) {
	if a.before, err = a.store.head(a.uid); err != nil {
		return err
	}
	if a.upto, err = a.store.indexes(a.session, a.before); err != nil {
		return err
	}
	next, now := a.before.last+1, a.store.clock.Now().Unix()
	for i := range a.messages {
		m := &a.messages[i]
		e, known := a.ids[m.ID]
		if !known && a.chosen[i] && a.before.last > 0 {
			if e, known, err = a.store.entry(a.uid, m.ID); err != nil {
				return err
			}
		}
		switch {
		case known && e.digest != a.digests[i]:
			return fmt.Errorf("append %q: %w", m.ID, ErrTaken)
		case !known:
			e = entry{order: next, ts: now, digest: a.digests[i]}
			a.ids[m.ID] = e
			a.fresh = append(a.fresh, i)
			next++
		}
		m.Order, m.Timestamp = e.order, seconds(e.ts)
	}
	return nil
}

// fill writes the new messages.
func (a *addition) fill(b engine.Batch) error {
	h := a.before
	sizes := make([]int64, 0, len(a.fresh))
	for _, i := range a.fresh {
		m := &a.messages[i]
		value, err := encode(m)
		if err != nil {
			return err
		}
		if err := errors.Join(b.Set(messageKey(a.uid, m.Order), value), b.Set(idKey(a.uid, m.ID), a.ids[m.ID].encode())); err != nil {
			return err
		}
		if err := a.upto.add(b, a.store.index, m); err != nil {
			return err
		}
		sizes = append(sizes, int64(len(value)))
		h.last, h.kept, h.bytes = m.Order, h.kept+1, h.bytes+int64(len(value))
		if h.first == 0 && m.Role == v1alpha1.RoleUser {
			h.first = m.Order
		}
	}
	if a.limit > 0 && h.bytes > a.limit {
		if err := a.truncate(b, &h, sizes); err != nil {
			return err
		}
	}
	return errors.Join(a.upto.save(b), b.Set(headKey(a.uid), h.encode()))
}

// truncate removes the oldest messages until the limit holds. sizes are the sizes of the new messages,
// which only b holds.
func (a *addition) truncate(b engine.Batch, h *head, sizes []int64) (err error) {
	it, err := a.store.engine.NewIter(messageKey(a.uid, h.oldest), messageKey(a.uid, a.before.last+1))
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, it.Close()) }()
	there := it.First()
	for ; h.bytes > a.limit && h.oldest < h.last; h.oldest++ {
		var size int64
		var m v1alpha1.SessionMessage
		if place := h.oldest - a.before.last - 1; place >= 0 {
			size, m = sizes[place], a.messages[a.fresh[place]]
		} else {
			if !there {
				return &CorruptError{messageKey(a.uid, h.oldest)}
			}
			size = int64(len(it.Value()))
			if a.upto != nil {
				if m, err = decode(it.Key(), it.Value()); err != nil {
					return err
				}
			}
			there = it.Next()
		}
		if h.oldest == h.first {
			continue
		}
		if err := a.upto.remove(b, a.store.index, &m); err != nil {
			return err
		}
		if err := b.Delete(messageKey(a.uid, h.oldest)); err != nil {
			return err
		}
		h.bytes -= size
		h.kept--
	}
	return nil
}
