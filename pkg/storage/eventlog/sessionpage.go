// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package eventlog

import (
	"context"
	"errors"
	"fmt"

	"github.com/platform-ai/platform/pkg/apis/core/v1alpha1"
)

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
	return unpurged(r.shared, func() (*StreamPage, error) { return readSessionPage(r, f, after, limit) })
}

func readSessionPage(r *Reader, f *filter, after int64, limit int) (p *StreamPage, err error) {
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
	for spent := (effort{}); ; spent.entries++ {
		src := sc.next()
		if src == nil || src.cur.cursor > p.Latest {
			upTo(p.Latest + 1)
			return p, sc.err
		}
		cursor := src.cur.cursor
		if len(p.Events) == limit || len(p.Gaps) > limit || spent.over(f, &r.opts) {
			p.Next = cursor - 1
			upTo(cursor)
			return p, nil
		}
		if !r.goneAt(&src.cur, rev) {
			upTo(cursor)
			e, err := sc.sought(f, &src.cur, &spent)
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
