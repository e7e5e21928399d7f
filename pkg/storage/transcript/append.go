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
	p, err := s.Stage(to, limit, messages)
	if err != nil {
		return nil, err
	}
	defer p.Release()
	if len(p.fresh) > 0 {
		if err := s.write(ctx, engine.Upkeep, p.fill); err != nil {
			return nil, fmt.Errorf("append: %w", err)
		}
	}
	return p.messages, nil
}

// Stage prepares an AppendTo that is committed together with other changes. Nobody else writes in the transcript, or reads it, until
// Release, which must follow the commit.
func (s *Store) Stage(to Session, limit int64, messages []v1alpha1.SessionMessage) (*Staged, error) {
	if owned.Bad(string(to.UID)) {
		return nil, fmt.Errorf("append: %w", ErrName)
	}
	p := &Staged{addition{store: s, uid: to.UID, session: to, limit: limit, ids: map[string]entry{}}}
	if err := p.prepare(messages); err != nil {
		return nil, err
	}
	s.lock(p.uid).Lock()
	if err := p.place(); err != nil {
		p.Release()
		return nil, err
	}
	return p, nil
}

// Staged is an append that is going to be committed; it is an engine.Part.
type Staged struct{ addition }

// Messages returns the messages as they will be stored.
func (p *Staged) Messages() []v1alpha1.SessionMessage { return p.messages }

// Release lets others write in the transcript.
func (p *Staged) Release() { p.store.lock(p.uid).Unlock() }

// Check refuses nothing: the transcript is locked since Stage.
func (*Staged) Check() error { return nil }

// Write writes the messages that are not stored yet.
func (p *Staged) Write(b engine.Batch) error {
	if len(p.fresh) == 0 {
		return nil
	}
	return p.fill(b)
}

// Abandon has nothing to revert.
func (*Staged) Abandon() {}

// Publish shows nothing: the transcript is read from the engine.
func (*Staged) Publish() {}

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
