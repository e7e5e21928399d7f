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

// Page is a part of a list. Items are in revision order, in a list over all
// namespaces by namespace first; within a task that is sequence order.
type Page struct {
	Items []*v1alpha1.ExecutionEvent
	// Revision is the state that was read, and where a watch goes on.
	Revision uint64
	// Continue, where set, asks for the rest of the same state.
	Continue string
	// Remaining is the number of items left, where that is cheap to know.
	Remaining *int64
}

// List returns a page of the events that q selects. Its cost is that of the page.
// Errors are ErrExpired, ErrFuture, ErrContinue and *event.FieldError.
func (l *Log) List(ctx context.Context, q Query) (*Page, error) {
	f, err := newFilter(&q)
	if err != nil {
		return nil, fmt.Errorf("list events: %w", err)
	}
	rev, from, err := l.position(&q, f)
	if err != nil {
		return nil, fmt.Errorf("list events: %w", err)
	}
	r, err := l.page(ctx, f, rev, from, q.Limit)
	if err != nil {
		var expired *ExpiredError
		if errors.As(err, &expired) && q.Continue != "" {
			expired.Continue = token{Place: from, Query: f.hash()}.encode()
		}
		return nil, fmt.Errorf("list events: %w", err)
	}
	p := &Page{Items: r.items, Revision: rev, Remaining: r.remaining}
	if r.next != nil {
		p.Continue = token{Revision: rev, Place: *r.next, Query: f.hash()}.encode()
	}
	return p, nil
}

// place is where a page starts: at the first entry at or behind it.
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

// position returns the revision to read and where to start.
func (l *Log) position(q *Query, f *filter) (rev uint64, from place, err error) {
	current := l.engine.Revision()
	rev = q.Revision
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

// page reads the state at rev. What a purge forgot while it read would look
// alive; it then reads again.
func (l *Log) page(ctx context.Context, f *filter, rev uint64, from place, limit int) (result, error) {
	for {
		before := l.purged()
		r, err := l.readPage(ctx, f, rev, from, limit)
		if l.purged() == before {
			return r, err
		}
	}
}

func (l *Log) readPage(ctx context.Context, f *filter, rev uint64, from place, limit int) (r result, err error) {
	r.items = []*v1alpha1.ExecutionEvent{}
	var s scan
	defer func() { err = errors.Join(err, s.close()) }()
	only, err := l.openList(&s, f, rev, from)
	if err != nil {
		return r, err
	}
	s.openData(l)
	if err := l.checkFloor(rev); err != nil {
		return r, err
	}
	for scanned := 0; ; scanned++ {
		src := s.next()
		if src == nil {
			return r, s.err
		}
		p := &src.cur
		if p.rev > rev {
			if f.ns != "" {
				return r, nil
			}
			s.skipNamespace(p.ns)
			continue
		}
		if limit > 0 && (len(r.items) == limit || scanned >= l.opts.ScanBudget) {
			r.next = &place{p.ns, p.rev}
			if only != nil {
				r.remaining = new(max(only.last-p.seq+1, 0))
			}
			return r, nil
		}
		e, err := l.pick(&s, f, p, rev)
		if err != nil {
			return r, err
		}
		if e != nil {
			r.items = append(r.items, e)
		}
		if scanned&1023 == 1023 && ctx.Err() != nil {
			return r, ctx.Err()
		}
		s.advance(src)
	}
}

// pick returns the event of an entry if it is selected in the state at rev; at 0
// nothing was deleted yet.
func (l *Log) pick(s *scan, f *filter, p *posting, rev uint64) (*v1alpha1.ExecutionEvent, error) {
	if !f.takesCodes(p) || l.goneAt(p, rev) {
		return nil, nil
	}
	return l.object(s, f, p)
}

// object returns the event of an entry if it is selected.
func (l *Log) object(s *scan, f *filter, p *posting) (*v1alpha1.ExecutionEvent, error) {
	if !f.takesCodes(p) {
		return nil, nil
	}
	if s.id == nil || s.id.no != p.no {
		id, err := l.identity(p.no)
		if err != nil {
			return nil, err
		}
		s.id = id
	}
	id := s.id
	if !f.takesStream(id) {
		return nil, nil
	}
	raw, err := s.record(p)
	if err != nil {
		return nil, err
	}
	e, _, err := id.decode(p.seq, raw)
	if err != nil || !f.takesEvent(e) {
		return nil, err
	}
	return e, nil
}

// openList opens the sources of a list. It returns the stream when the list is
// exactly the rest of one.
func (l *Log) openList(s *scan, f *filter, rev uint64, from place) (*view, error) {
	switch {
	case f.none:
		return nil, nil
	case f.ns == "":
		s.namespaces(l, f, from.Namespace, from.Revision)
		return nil, s.err
	case f.task != "":
		streams, err := l.streamsSince(f.ns, f.task, rev, rev)
		if err != nil {
			return nil, err
		}
		for _, v := range streams {
			first, err := l.seqAfter(v.no, v.last, from.Revision)
			if err != nil {
				return nil, err
			}
			s.stream(l, v.no, f, max(first, l.oldestAt(v.no, rev)), v.last)
		}
		if len(streams) == 1 && f.session == "" && f.match == nil && f.seq == 0 && f.facets()[0] == facetAll {
			return &streams[0], s.err
		}
		return nil, s.err
	case f.session != "":
		first, err := l.cursorAfter(f.ns, f.session, from.Revision)
		if err != nil {
			return nil, err
		}
		s.session(l, f.ns, f.session, first)
		return nil, s.err
	}
	s.namespace(l, f, from.Revision)
	return nil, s.err
}

// streamsSince returns the streams of a task name that were begun at or before
// revision to and were not, or not all, gone at revision from: the live one and
// deleted ones.
func (l *Log) streamsSince(ns, task string, from, to uint64) ([]view, error) {
	live, ok, err := l.byTask(ns, task)
	if err != nil {
		return nil, err
	}
	var streams []view
	l.mu.Lock()
	for _, d := range l.byName[taskName{ns, task}] {
		if d.whole && d.no <= to && d.end() > from {
			streams = append(streams, view{d.identity, state{last: d.last}})
		}
		if ok && d.whole && d.no == live.no {
			ok = false // deleted since it was looked up
		}
	}
	l.mu.Unlock()
	if ok {
		streams = append(streams, live)
	}
	return streams, nil
}

// goneAt reports whether an event was deleted at or before rev.
func (l *Log) goneAt(p *posting, rev uint64) bool {
	if l.leaving.Load() == 0 {
		return false
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, d := range l.deleted[p.no] {
		if d.has(p.seq) {
			return d.of(p.seq) <= rev
		}
	}
	return false
}

// oldestAt returns a seq of stream no below which nothing is left at rev.
func (l *Log) oldestAt(no, rev uint64) int64 {
	l.mu.Lock()
	defer l.mu.Unlock()
	oldest := int64(1)
	for _, d := range l.deleted[no] {
		if d.rev <= rev {
			oldest = min(d.last, d.first+int64(rev-d.rev)) + 1
		}
	}
	return oldest
}

// checkFloor returns an ExpiredError for what can no longer be read. Readers open
// their sources first: a purge raises the floor before it removes anything.
func (l *Log) checkFloor(rev uint64) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if rev < l.floor {
		return &ExpiredError{Revision: rev, Floor: l.floor}
	}
	return nil
}

// purged counts the deletions that purges finished.
func (l *Log) purged() uint64 {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.forgotten
}

// Get returns one event by its object name, in the live stream of its task.
func (l *Log) Get(_ context.Context, namespace, name string) (*v1alpha1.ExecutionEvent, error) {
	e, err := l.get(namespace, name)
	if err != nil {
		return nil, fmt.Errorf("get event %s/%s: %w", namespace, name, err)
	}
	return e, nil
}

func (l *Log) get(namespace, name string) (*v1alpha1.ExecutionEvent, error) {
	task, seq, err := event.ParseName(name)
	if err != nil || !validName(namespace) || !validName(task) {
		return nil, ErrNotFound
	}
	v, ok, err := l.byTask(namespace, task)
	if err != nil {
		return nil, err
	}
	if !ok || seq > v.last || seq < v.oldest {
		return nil, ErrNotFound
	}
	raw, ok, err := l.engine.Get(dataKey(v.no, seq))
	if err != nil {
		return nil, err
	}
	if !ok {
		return nil, ErrNotFound
	}
	e, _, err := v.decode(seq, raw)
	return e, err
}
