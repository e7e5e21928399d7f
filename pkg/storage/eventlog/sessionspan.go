// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package eventlog

import (
	"errors"

	"github.com/platform-ai/platform/pkg/apis/core/v1alpha1"
)

// sessionBackward reads a session's timeline from before on towards its beginning. Gaps are in the order of the events,
// the newest first.
func sessionBackward(r *Reader, f *filter, before int64, limit int) (p *StreamPage, err error) {
	p = &StreamPage{Events: []*v1alpha1.ExecutionEvent{}}
	if f.none {
		return p, nil
	}
	if p.Latest, err = r.latestCursor(f.ns, f.session); err != nil || p.Latest == 0 {
		return p, err
	}
	last := below(before, p.Latest)
	rev := r.engine.Revision()
	sc := newScan(r.shared)
	sc.backward = true
	defer func() { err = errors.Join(err, sc.close()) }()
	sc.add(sessionKey(f.ns, f.session, 1), sessionKey(f.ns, f.session, last+1), parseSession)
	sc.openData()
	if limit <= 0 {
		limit = defaultPage
	}
	expected := last // cursors are dense, so the event of a missing one is no longer kept
	downTo := func(cursor int64) {
		if cursor < expected {
			p.Gaps = append(p.Gaps, Gap{cursor + 1, expected})
		}
		expected = cursor - 1
	}
	for spent := (effort{}); ; spent.entries++ {
		src := sc.next()
		if src == nil {
			downTo(0)
			return p, sc.err
		}
		cursor := src.cur.cursor
		if len(p.Events) == limit || len(p.Gaps) > limit || spent.over(f, &r.opts) {
			p.Prev = cursor + 1
			downTo(cursor)
			return p, nil
		}
		if !r.goneAt(&src.cur, rev) {
			downTo(cursor)
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

// sought returns the event of an entry if it is selected, and adds to spent what that took.
func (s *scan) sought(f *filter, p *posting, spent *effort) (*v1alpha1.ExecutionEvent, error) {
	if f.text != nil && f.takesCodes(p) {
		raw, err := s.record(p)
		if err != nil {
			return nil, err
		}
		if spent.bytes += len(raw); !f.text.mayBeIn(raw) {
			return nil, nil
		}
	}
	return s.object(f, p)
}
