// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package transcript

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/types"

	"github.com/platform-ai/platform/pkg/apis/core/v1alpha1"
	"github.com/platform-ai/platform/pkg/storage/engine"
	"github.com/platform-ai/platform/pkg/storage/owned"
)

// maxPageBytes ends a page early, so that a few very long messages do not make a response too large to
// handle. A page has at least one message.
const maxPageBytes = 8 << 20

// Page is a part of a transcript, oldest message first.
type Page struct {
	Messages []v1alpha1.SessionMessage
	// More reports that there are messages after the last one in this page.
	More bool
	// Info is the size of the whole transcript at that moment.
	Info Info
}

// Page returns at most limit messages after the order after, up to and including the message with the id
// through. An empty id means the last message. Long messages can make a page shorter than limit although
// there are more. A message removed by truncation still bounds what is returned; an id that never existed
// is ErrNotFound.
func (s *Store) Page(_ context.Context, uid types.UID, after int64, limit int, through string) (p Page, err error) {
	err = s.read(uid, through, func(r *reader) {
		if p.Info = r.head.info(); after >= r.upto {
			return
		}
		if h := r.head; h.first > after && h.first < h.oldest && h.first <= r.upto {
			r.take(r.it.SeekGE(messageKey(uid, h.first)))
			after = h.first
		}
		for ok := r.it.SeekGE(messageKey(uid, max(after+1, r.head.oldest))); ok && r.room(limit); ok = r.it.Next() {
			r.take(true)
		}
		p.Messages = r.out
		p.More = len(r.out) > 0 && r.out[len(r.out)-1].Order < r.upto
	})
	return p, err
}

// Newest returns the n newest messages up to and including the message with the id through, as Page does.
// If they are long, it returns fewer: the newest of them.
func (s *Store) Newest(_ context.Context, uid types.UID, n int, through string) (p Page, err error) {
	err = s.read(uid, through, func(r *reader) {
		h := r.head
		ok := r.it.Last() && r.upto >= h.oldest
		for order := r.upto; ok && order >= h.oldest && r.room(n); order-- {
			r.take(true)
			ok = r.it.Prev()
		}
		if complete := len(r.out) == int(max(0, r.upto-h.oldest+1)); complete && h.first > 0 && h.first < h.oldest && h.first <= r.upto && r.room(n) {
			r.take(r.it.SeekGE(messageKey(uid, h.first)))
		}
		slices.Reverse(r.out)
		p = Page{Messages: r.out, Info: h.info()}
	})
	return p, err
}

// reader collects messages under an iterator that ends with the message upto.
type reader struct {
	head  head
	upto  int64
	it    engine.Iter
	out   []v1alpha1.SessionMessage
	bytes int
	err   error
}

// read calls f with a reader of the messages up to through.
func (s *Store) read(uid types.UID, through string, f func(*reader)) (err error) {
	if owned.Bad(string(uid)) {
		return nil
	}
	l := s.lock(uid)
	l.RLock()
	defer l.RUnlock()
	r := &reader{}
	if r.head, err = s.head(uid); err != nil {
		return err
	}
	r.upto = r.head.last
	if through != "" {
		e, ok, err := s.entry(uid, through)
		if err != nil {
			return err
		}
		if !ok {
			return fmt.Errorf("message %q: %w", through, ErrNotFound)
		}
		r.upto = e.order
	}
	if r.upto < r.head.oldest { // of these, only the first message of the user can still be stored
		r.upto = min(r.upto, r.head.first)
	}
	// Start at the first message that is kept, so that the iterator does not step over removed ones.
	from := r.head.oldest
	if r.head.first > 0 {
		from = min(from, r.head.first)
	}
	if r.it, err = s.engine.NewIter(messageKey(uid, min(from, r.upto+1)), messageKey(uid, r.upto+1)); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, r.it.Close()) }()
	f(r)
	return r.err
}

func (r *reader) room(n int) bool { return r.err == nil && len(r.out) < n && r.bytes < maxPageBytes }

// take collects the message that the iterator is at.
func (r *reader) take(ok bool) {
	if !ok || r.err != nil {
		return
	}
	m, err := decode(r.it.Key(), r.it.Value())
	if err != nil {
		r.err = err
		return
	}
	r.bytes += len(r.it.Value())
	r.out = append(r.out, m)
}
