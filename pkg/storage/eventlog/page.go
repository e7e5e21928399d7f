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
	// Next is what to pass as after for the page behind this one: with a filter
	// it can be larger than the seq of the last event.
	Next int64
	// Head is the state of a task's stream; zero for a session.
	Head Head
}

// defaultPage is the size of a page when none is asked for (D1 §2.8).
const defaultPage = 100

// TaskPage returns up to limit events of a stream, of the types given or of all,
// whose seq is larger than after. A stream without events is not an error; a
// deleted one is ErrDeleted. Limit 0 means 100.
func (l *Log) TaskPage(_ context.Context, s Stream, after int64, limit int, types []v1alpha1.EventType) (*StreamPage, error) {
	f, err := newFilter(&Query{Namespace: s.Namespace, Types: types})
	if err != nil {
		return nil, fmt.Errorf("read events of %s: %w", s, err)
	}
	p, err := l.taskPage(s, f, after, limit)
	if err != nil {
		return nil, fmt.Errorf("read events of %s: %w", s, err)
	}
	return p, nil
}

func (l *Log) taskPage(s Stream, f *filter, after int64, limit int) (p *StreamPage, err error) {
	after = max(after, 0)
	v, ok, err := l.byUID(s.UID)
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
		Head: Head{LatestSeq: v.last, Closed: v.terminal != 0, Terminal: typeNames[v.terminal]},
	}
	var sc scan
	defer func() { err = errors.Join(err, sc.close()) }()
	sc.stream(l, v.no, f, after+1, v.last)
	sc.openData(l)
	if limit <= 0 {
		limit = defaultPage
	}
	for scanned := 0; ; scanned++ {
		src := sc.next()
		if src == nil {
			return p, sc.err
		}
		if len(p.Events) == limit || scanned >= l.opts.ScanBudget {
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

// SessionPage returns up to limit events of a session's timeline whose cursor is
// larger than after. They carry the cursor as seq and their place in their task's
// stream as taskSeq. Events of deleted tasks leave; their cursors are not given
// again. Limit 0 means 100.
func (l *Log) SessionPage(_ context.Context, namespace, session string, after int64, limit int) (*StreamPage, error) {
	for {
		before := l.purged()
		p, err := l.sessionPage(namespace, session, max(after, 0), limit)
		if l.purged() != before {
			continue // what a purge forgot meanwhile would look alive
		}
		if err != nil {
			return nil, fmt.Errorf("read events of session %s/%s: %w", namespace, session, err)
		}
		return p, nil
	}
}

func (l *Log) sessionPage(ns, session string, after int64, limit int) (p *StreamPage, err error) {
	p = &StreamPage{Events: []*v1alpha1.ExecutionEvent{}, Next: after}
	if !validName(ns) || !validName(session) {
		return p, nil
	}
	if p.Latest, err = l.latestCursor(ns, session); err != nil {
		return nil, err
	}
	p.Next = max(after, p.Latest)
	rev := l.engine.Revision()
	var sc scan
	defer func() { err = errors.Join(err, sc.close()) }()
	sc.session(l, ns, session, after+1)
	sc.openData(l)
	if limit <= 0 {
		limit = defaultPage
	}
	f := &filter{ns: ns}
	for scanned := 0; ; scanned++ {
		src := sc.next()
		if src == nil || src.cur.cursor > p.Latest {
			return p, sc.err
		}
		cursor := src.cur.cursor
		if len(p.Events) == limit || scanned >= l.opts.ScanBudget {
			p.Next = cursor - 1
			return p, nil
		}
		e, err := l.pick(&sc, f, &src.cur, rev)
		if err != nil {
			return nil, err
		}
		if e != nil {
			p.Events = append(p.Events, sessionView(e, cursor))
		}
		sc.advance(src)
	}
}

// latestCursor returns the published cursor of a session.
func (l *Log) latestCursor(ns, session string) (int64, error) {
	cached := func() (int64, bool) {
		l.mu.Lock()
		defer l.mu.Unlock()
		c := l.heads.sessions[taskName{ns, session}]
		if c == nil {
			return 0, false
		}
		return c.published, true
	}
	if n, ok := cached(); ok {
		return n, nil
	}
	last, _, err := l.number(cursorKey(ns, session))
	if err != nil {
		return 0, err
	}
	if n, ok := cached(); ok {
		return n, nil // the store may show a commit on its way
	}
	return int64(last), nil
}
