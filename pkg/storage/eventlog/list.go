// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package eventlog

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/platform-ai/platform/pkg/apis/core/v1alpha1"
	"github.com/platform-ai/platform/pkg/event"
)

// Page is a part of a list. Items are in revision order; a list over all namespaces sorts by namespace
// first. Within a task, revision order is sequence order.
type Page struct {
	Items []*v1alpha1.ExecutionEvent
	// Revision is the state that was read. A watch can continue from it.
	Revision uint64
	// Continue, if set, is the token for the rest of the same state.
	Continue string
	// Remaining is the number of items left, or nil if counting them would be expensive.
	Remaining *int64
}

// List returns a page of the events that q selects. Its cost depends on the page, not on the stream.
// Errors are ErrExpired, ErrFuture, ErrContinue and *event.FieldError.
func (r *Reader) List(ctx context.Context, q Query) (*Page, error) {
	f, err := newFilter(&q)
	if err != nil {
		return nil, fmt.Errorf("list events: %w", err)
	}
	rev, from, err := position(&q, f, r.engine.Revision())
	if err != nil {
		return nil, fmt.Errorf("list events: %w", err)
	}
	got, err := r.page(ctx, f, rev, from, bounds{q.Limit, q.Bytes})
	if err != nil {
		var expired *ExpiredError
		if errors.As(err, &expired) && q.Continue != "" {
			expired.Continue = token{Place: from, Query: f.hash()}.encode()
		}
		return nil, fmt.Errorf("list events: %w", err)
	}
	p := &Page{Items: got.items, Revision: rev, Remaining: got.remaining}
	if got.next != nil {
		p.Continue = token{Revision: rev, Place: *got.next, Query: f.hash()}.encode()
	}
	return p, nil
}

// place is where a page starts: at the first entry at or after it.
type place struct {
	Namespace string `json:"ns,omitempty"`
	Revision  uint64 `json:"from"`
}

// token is a continue token. Revision 0 reads the newest state.
type token struct {
	Version  int    `json:"v"`
	Revision uint64 `json:"rv"`
	Place    place  `json:"at"`
	Query    uint32 `json:"q"`
}

const tokenVersion = 1

func (t token) encode() string {
	t.Version = tokenVersion
	b, err := json.Marshal(t)
	if err != nil { // numbers and a string always marshal
		return ""
	}
	return base64.RawURLEncoding.EncodeToString(b)
}

func decodeToken(s string) (t token, err error) {
	b, err := base64.RawURLEncoding.DecodeString(s)
	if err != nil || json.Unmarshal(b, &t) != nil || t.Version != tokenVersion {
		return token{}, ErrContinue
	}
	return t, nil
}

// position returns the revision to read and the place to start at.
func position(q *Query, f *filter, current uint64) (rev uint64, from place, err error) {
	rev, from = q.Revision, place(q.From)
	if q.Continue != "" {
		t, err := decodeToken(q.Continue)
		if err != nil || t.Query != f.hash() {
			return 0, place{}, ErrContinue
		}
		rev, from = t.Revision, t.Place
	}
	switch {
	case rev > current:
		return 0, place{}, &FutureError{rev, current}
	case rev == 0, q.NotOlderThan && q.Continue == "":
		rev = current
	}
	return rev, from, nil
}

// result is a page as read.
type result struct {
	items     []*v1alpha1.ExecutionEvent
	next      *place
	remaining *int64
}

// end says where the next page begins: at p. only is the stream that is listed, if it is one.
func (out *result) end(p *posting, only *view) {
	out.next = &place{p.ns, p.rev}
	if only != nil {
		out.remaining = new(max(only.last-p.seq+1, 0))
	}
}

// bounds are those of a page: how many events it has and how large they are. 0 is no bound.
type bounds struct {
	items int
	bytes int64
}

// EventBytes is about how many bytes of memory an event takes: its texts, and a fixed amount for everything else.
func EventBytes(e *v1alpha1.ExecutionEvent) int64 {
	const fixed = 1 << 10
	n := fixed + len(e.Summary) + len(e.ContentText)
	if e.Content != nil {
		n += len(e.Content.Raw)
	}
	return int64(n)
}

// page reads the state at rev.
func (r *Reader) page(ctx context.Context, f *filter, rev uint64, from place, most bounds) (result, error) {
	return unpurged(r.shared, func() (result, error) { return readPage(ctx, r, f, rev, from, most) })
}

func readPage(ctx context.Context, r *Reader, f *filter, rev uint64, from place, most bounds) (out result, err error) {
	out.items = []*v1alpha1.ExecutionEvent{}
	s := newScan(r.shared)
	defer func() { err = errors.Join(err, s.close()) }()
	only, err := s.openList(f, rev, from)
	if err != nil {
		return out, err
	}
	s.openData()
	if err := r.checkFloor(rev); err != nil {
		return out, err
	}
	size := int64(0)
	for scanned := 0; ; scanned++ {
		src := s.next()
		if src == nil {
			return out, s.err
		}
		p := &src.cur
		if p.rev > rev {
			if f.ns != "" {
				return out, nil
			}
			s.skipNamespace(p.ns)
			continue
		}
		if most.items > 0 && (len(out.items) == most.items || scanned >= r.opts.ScanBudget) {
			out.end(p, only)
			return out, nil
		}
		switch e, err := s.pick(f, p, rev); {
		case err != nil:
			return out, err
		case e != nil:
			if size += EventBytes(e); most.bytes > 0 && size > most.bytes && len(out.items) > 0 {
				out.end(p, only)
				return out, nil
			}
			out.items = append(out.items, e)
		}
		if scanned&1023 == 1023 && ctx.Err() != nil {
			return out, ctx.Err()
		}
		s.advance(src)
	}
}

// Get returns one event by its object name, in the live stream of its task.
func (r *Reader) Get(_ context.Context, namespace, name string) (*v1alpha1.ExecutionEvent, error) {
	e, err := r.get(namespace, name)
	if err != nil {
		return nil, fmt.Errorf("get event %s/%s: %w", namespace, name, err)
	}
	return e, nil
}

func (r *Reader) get(namespace, name string) (*v1alpha1.ExecutionEvent, error) {
	task, seq, err := event.ParseName(name)
	if err != nil || !validName(namespace) || !validName(task) {
		return nil, ErrNotFound
	}
	v, ok, err := r.byTask(namespace, task)
	if err != nil {
		return nil, err
	}
	if !ok || seq > v.last || seq < v.oldest {
		return nil, ErrNotFound
	}
	raw, ok, err := r.engine.Get(dataKey(v.no, seq))
	if err != nil {
		return nil, err
	}
	if !ok {
		return nil, ErrNotFound
	}
	e, _, err := v.decode(seq, raw)
	return e, err
}
