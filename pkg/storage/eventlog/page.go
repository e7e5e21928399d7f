// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package eventlog

import (
	"context"
	"errors"
	"fmt"

	"github.com/platform-ai/platform/pkg/apis/core/v1alpha1"
)

// StreamPage is a part of a task's stream or of a session's timeline, by seq or
// cursor.
type StreamPage struct {
	Events []*v1alpha1.ExecutionEvent
	// Latest is the newest seq or cursor of the whole stream, 0 when it is empty.
	Latest int64
	// Next is the value to pass as after for the next page. With a filter it can be larger than the seq of
	// the last event.
	Next int64
	// Gaps are the missing numbers between after and Next whose events are no longer kept, in order. A
	// task's stream can have one gap, at its beginning. A session can have one for each task that was
	// deleted or trimmed in between.
	Gaps []Gap
	// Head is the state of a task's stream; zero for a session.
	Head Head
}

// Gap is a run of events that are no longer kept: seqs of a task's stream, or
// cursors of a session, both inclusive.
type Gap struct{ From, To int64 }

// defaultPage is the size of a page when none is asked for.
const defaultPage = 100

// TaskPage returns up to limit events of a stream whose seq is larger than after. Only events of the given
// types are returned, or of all types if there are none. A stream without events is not an error; a deleted
// one is ErrDeleted. Limit 0 means 100.
func (r *Reader) TaskPage(_ context.Context, s Stream, after int64, limit int, types []v1alpha1.EventType) (*StreamPage, error) {
	f, err := newFilter(&Query{Namespace: s.Namespace, Types: types})
	if err != nil {
		return nil, fmt.Errorf("read events of %s: %w", s, err)
	}
	p, err := r.taskPage(s, f, after, limit)
	if err != nil {
		return nil, fmt.Errorf("read events of %s: %w", s, err)
	}
	return p, nil
}

func (r *Reader) taskPage(s Stream, f *filter, after int64, limit int) (*StreamPage, error) {
	return unpurged(r.shared, func() (*StreamPage, error) { return r.readTaskPage(s, f, after, limit) })
}

func (r *Reader) readTaskPage(s Stream, f *filter, after int64, limit int) (p *StreamPage, err error) {
	after = max(after, 0)
	v, ok, err := r.byUID(s.UID)
	switch {
	case err != nil:
		return nil, err
	case !ok:
		return &StreamPage{Events: []*v1alpha1.ExecutionEvent{}, Next: after}, nil
	case v.deleted != 0:
		return nil, ErrDeleted
	}
	p = &StreamPage{
		Events: []*v1alpha1.ExecutionEvent{}, Latest: v.last, Next: max(after, v.last),
		Head: v.head(),
	}
	first := max(after+1, v.oldest)
	if first > after+1 {
		p.Gaps = []Gap{{after + 1, v.oldest - 1}}
	}
	sc := newScan(r.shared)
	defer func() { err = errors.Join(err, sc.close()) }()
	sc.stream(v.no, f, first, v.last)
	sc.openData()
	if limit <= 0 {
		limit = defaultPage
	}
	for scanned := 0; ; scanned++ {
		src := sc.next()
		if src == nil {
			return p, sc.err
		}
		if len(p.Events) == limit || scanned >= r.opts.ScanBudget {
			p.Next = src.cur.seq - 1
			return p, nil
		}
		if f.takesCodes(&src.cur) {
			raw, err := sc.record(&src.cur)
			if err != nil {
				return nil, err
			}
			e, _, err := v.decode(src.cur.seq, raw)
			if err != nil {
				return nil, err
			}
			p.Events = append(p.Events, e)
		}
		sc.advance(src)
	}
}

// SessionPage returns up to limit events of a session's timeline whose cursor is larger than after. Only
// events of the given types are returned, or of all types if there are none. The events carry the cursor as
// seq and their place in their task's stream as taskSeq. Events of deleted tasks and trimmed events are
// missing; their cursors are not reused and are listed in the page's Gaps. Limit 0 means 100.
func (r *Reader) SessionPage(_ context.Context, namespace, session string, after int64, limit int, types []v1alpha1.EventType) (*StreamPage, error) {
	f, err := newFilter(&Query{Namespace: namespace, Session: session, Types: types})
	if err != nil {
		return nil, fmt.Errorf("read events of session %s/%s: %w", namespace, session, err)
	}
	p, err := r.sessionPage(f, max(after, 0), limit)
	if err != nil {
		return nil, fmt.Errorf("read events of session %s/%s: %w", namespace, session, err)
	}
	return p, nil
}

func (r *Reader) sessionPage(f *filter, after int64, limit int) (*StreamPage, error) {
	return unpurged(r.shared, func() (*StreamPage, error) { return r.readSessionPage(f, after, limit) })
}

func (r *Reader) readSessionPage(f *filter, after int64, limit int) (p *StreamPage, err error) {
	p = &StreamPage{Events: []*v1alpha1.ExecutionEvent{}, Next: after}
	if f.none {
		return p, nil
	}
	if p.Latest, err = r.latestCursor(f.ns, f.session); err != nil || after >= p.Latest {
		return p, err
	}
	p.Next = max(after, p.Latest)
	rev := r.engine.Revision()
	sc := newScan(r.shared)
	defer func() { err = errors.Join(err, sc.close()) }()
	sc.session(f.ns, f.session, after+1)
	sc.openData()
	if limit <= 0 {
		limit = defaultPage
	}
	expected := after + 1 // cursors are dense, so the event of a missing one is no longer kept
	upTo := func(cursor int64) {
		if cursor > expected {
			p.Gaps = append(p.Gaps, Gap{expected, cursor - 1})
		}
		expected = cursor + 1
	}
	for scanned := 0; ; scanned++ {
		src := sc.next()
		if src == nil || src.cur.cursor > p.Latest {
			upTo(p.Latest + 1)
			return p, sc.err
		}
		cursor := src.cur.cursor
		if len(p.Events) == limit || len(p.Gaps) > limit || scanned >= r.opts.ScanBudget {
			p.Next = cursor - 1
			upTo(cursor)
			return p, nil
		}
		if !r.goneAt(&src.cur, rev) {
			upTo(cursor)
			e, err := sc.object(f, &src.cur)
			if err != nil {
				return nil, err
			}
			if e != nil {
				p.Events = append(p.Events, sessionView(e, cursor))
			}
		}
		sc.advance(src)
	}
}
