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
)

// maxPageBytes ends a page early, so that a few very long messages do not make
// an answer that nobody can take. A page has at least one message.
const maxPageBytes = 8 << 20

// Page is a part of a transcript, oldest message first.
type Page struct {
	Messages []v1alpha1.SessionMessage
	// More tells that there are messages behind the last one here.
	More bool
	// Info is the size of the whole transcript at that moment.
	Info Info
}

// Page returns the messages behind the order after, at most limit of them. It
// may be fewer although there are more, when they are long.
func (s *Store) Page(_ context.Context, uid types.UID, after int64, limit int) (p Page, err error) {
	if bad(string(uid)) {
		return Page{}, nil
	}
	l := s.lock(uid)
	l.RLock()
	defer l.RUnlock()
	h, err := s.head(uid)
	if err != nil || h.last == 0 {
		return Page{}, err
	}
	r, err := s.reader(uid, h)
	if err != nil {
		return Page{}, err
	}
	defer func() { err = errors.Join(err, r.it.Close()) }()
	order := after + 1
	if h.first > 0 && order <= h.first && h.first < h.oldest {
		if !r.take(r.it.SeekGE(messageKey(uid, h.first))) {
			return Page{}, r.failed(h.first)
		}
		order = h.first + 1
	}
	for ok := r.it.SeekGE(messageKey(uid, max(order, h.oldest))); ok && len(r.out) < limit && r.bytes < maxPageBytes; ok = r.it.Next() {
		if !r.take(true) {
			break
		}
	}
	if r.err != nil {
		return Page{}, r.err
	}
	p = Page{Messages: r.out, Info: h.info()}
	p.More = len(r.out) > 0 && r.out[len(r.out)-1].Order < h.last
	return p, nil
}

// Newest returns the n newest messages up to and with the one that has the id
// through; an empty id means the last. It may be fewer although there are more,
// when they are long: then the newest of them. A message that left by truncation
// still bounds what is returned; an id that never was is ErrNotFound.
func (s *Store) Newest(_ context.Context, uid types.UID, n int, through string) (p Page, err error) {
	if bad(string(uid)) {
		return Page{}, nil
	}
	l := s.lock(uid)
	l.RLock()
	defer l.RUnlock()
	h, err := s.head(uid)
	if err != nil {
		return Page{}, err
	}
	upto := h.last
	if through != "" {
		e, ok, err := s.entry(uid, through)
		if err != nil {
			return Page{}, err
		}
		if !ok {
			return Page{}, fmt.Errorf("message %q: %w", through, ErrNotFound)
		}
		upto = e.order
	}
	r, err := s.reader(uid, h)
	if err != nil {
		return Page{}, err
	}
	defer func() { err = errors.Join(err, r.it.Close()) }()
	room := func() bool { return len(r.out) < n && r.bytes < maxPageBytes }
	order := upto
	for ok := order >= h.oldest && r.it.SeekLT(messageKey(uid, order+1)); ok && order >= h.oldest && room(); order-- {
		ok = r.take(true) && r.it.Prev()
	}
	if h.first > 0 && h.first < h.oldest && h.first <= upto && order < h.oldest && room() {
		r.take(r.it.SeekGE(messageKey(uid, h.first)))
	}
	if r.err != nil {
		return Page{}, r.err
	}
	slices.Reverse(r.out)
	return Page{Messages: r.out, Info: h.info()}, nil
}

// reader collects messages under an iterator.
type reader struct {
	uid   types.UID
	it    *engine.Iter
	out   []v1alpha1.SessionMessage
	bytes int
	err   error
}

func (s *Store) reader(uid types.UID, h head) (*reader, error) {
	// From the first message that is kept: what left before it must not be stepped over.
	from := h.oldest
	if h.first > 0 {
		from = min(from, h.first)
	}
	it, err := s.engine.NewIter(messageKey(uid, from), messageKey(uid, h.last+1))
	if err != nil {
		return nil, err
	}
	return &reader{uid: uid, it: it}, nil
}

// take collects the message that the iterator is at, and reports whether it is one.
func (r *reader) take(ok bool) bool {
	if !ok || r.err != nil {
		return false
	}
	m, err := decode(r.it.Key(), r.it.Value())
	if err != nil {
		r.err = err
		return false
	}
	r.bytes += len(r.it.Value())
	r.out = append(r.out, m)
	return true
}

func (r *reader) failed(order int64) error {
	if r.err != nil {
		return r.err
	}
	return &CorruptError{messageKey(r.uid, order)}
}
