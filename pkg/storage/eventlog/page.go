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
	// Prev is, on a page that was read backward, the value to pass as before for the next older page; 0 if there is
	// nothing older.
	Prev int64
	// Gaps are the missing numbers between after and Next whose events are no longer kept, in order. A
	// task's stream can have one gap, at its beginning. A session can have one for each task that was
	// deleted or trimmed in between. Both have one where the store lost events, or was restored from a backup.
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
	return unpurged(r.shared, func() (*StreamPage, error) { return readTaskPage(r, s, f, after, limit) })
}

func readTaskPage(r *Reader, s Stream, f *filter, after int64, limit int) (p *StreamPage, err error) {
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
	defer func() {
		if err == nil {
			p.Gaps = v.gaps(after, p.Next)
		}
	}()
	sc := newScan(r.shared)
	defer func() { err = errors.Join(err, sc.close()) }()
	sc.stream(v.no, f, first, v.last)
	sc.openData()
	if limit <= 0 {
		limit = defaultPage
	}
	for spent := (effort{}); ; spent.entries++ {
		src := sc.next()
		if src == nil {
			return p, sc.err
		}
		if len(p.Events) == limit || spent.over(f, &r.opts) {
			p.Next = src.cur.seq - 1
			return p, nil
		}
		e, err := sc.inStream(f, &v, &src.cur, &spent)
		if err != nil {
			return nil, err
		}
		if e != nil {
			p.Events = append(p.Events, e)
		}
		sc.advance(src)
	}
}
