// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package eventlog

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/platform-ai/platform/pkg/apis/core/v1alpha1"
)

// Span selects a part of a task's stream or of a session's timeline. Positions are seqs or cursors.
type Span struct {
	// After selects the events after a position, the oldest first.
	After int64
	// Backward selects the events before Before instead, the newest first. A Before of 0 is after the newest event.
	Backward bool
	Before   int64
	// Limit bounds the events; 0 means 100.
	Limit int
	// Types selects events of any of these types; none selects all.
	Types []v1alpha1.EventType
	// Text selects events that have this text in any letter case. A page that has looked at 20,000 events or 8 MiB of
	// them is returned short, with a position to go on from.
	Text string
}

func (s *Span) filter(q Query) (*filter, error) {
	q.Types = s.Types
	f, err := newFilter(&q)
	if err == nil && s.Text != "" {
		f.text = newNeedle(s.Text)
	}
	return f, err
}

// TaskSpan returns a part of a stream. Its cost depends on the page, not on the stream. A stream without events is not
// an error; a deleted one is ErrDeleted.
func (r *Reader) TaskSpan(_ context.Context, s Stream, span Span) (*StreamPage, error) {
	f, err := span.filter(Query{Namespace: s.Namespace})
	if err != nil {
		return nil, fmt.Errorf("read events of %s: %w", s, err)
	}
	p, err := unpurged(r.shared, func() (*StreamPage, error) {
		if span.Backward {
			return taskBackward(r, s, f, span.Before, span.Limit)
		}
		return readTaskPage(r, s, f, span.After, span.Limit)
	})
	if err != nil {
		return nil, fmt.Errorf("read events of %s: %w", s, err)
	}
	return p, nil
}

// SessionSpan returns a part of a session's timeline; see SessionPage.
func (r *Reader) SessionSpan(_ context.Context, namespace, session string, span Span) (*StreamPage, error) {
	f, err := span.filter(Query{Namespace: namespace, Session: session})
	if err != nil {
		return nil, fmt.Errorf("read events of session %s/%s: %w", namespace, session, err)
	}
	p, err := unpurged(r.shared, func() (*StreamPage, error) {
		if span.Backward {
			return sessionBackward(r, f, span.Before, span.Limit)
		}
		return readSessionPage(r, f, max(span.After, 0), span.Limit)
	})
	if err != nil {
		return nil, fmt.Errorf("read events of session %s/%s: %w", namespace, session, err)
	}
	return p, nil
}

// below returns the last position before a position, which is latest if before is 0.
func below(before, latest int64) int64 {
	if before <= 0 {
		return latest
	}
	return min(before-1, latest)
}

// taskBackward reads a stream from before on towards its beginning.
func taskBackward(r *Reader, s Stream, f *filter, before int64, limit int) (p *StreamPage, err error) {
	p = &StreamPage{Events: []*v1alpha1.ExecutionEvent{}}
	v, ok, err := r.byUID(s.UID)
	switch {
	case err != nil || !ok:
		return p, err
	case v.deleted != 0:
		return nil, ErrDeleted
	}
	p.Latest, p.Head = v.last, v.head()
	last := below(before, v.last)
	sc := newScan(r.shared)
	sc.backward = true
	defer func() { err = errors.Join(err, sc.close()) }()
	sc.stream(v.no, f, v.oldest, last)
	sc.openData()
	if limit <= 0 {
		limit = defaultPage
	}
	for spent := (effort{}); ; spent.entries++ {
		src := sc.next()
		if src == nil {
			p.Gaps = v.gaps(0, last)
			slices.Reverse(p.Gaps)
			return p, sc.err
		}
		if len(p.Events) == limit || spent.over(f, &r.opts) {
			p.Prev = src.cur.seq + 1
			p.Gaps = v.gaps(src.cur.seq, last)
			slices.Reverse(p.Gaps)
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

// inStream returns the event of an entry of a stream if the filter selects it.
func (s *scan) inStream(f *filter, v *view, p *posting, spent *effort) (*v1alpha1.ExecutionEvent, error) {
	if !f.takesCodes(p) {
		return nil, nil
	}
	raw, err := s.record(p)
	if err != nil {
		return nil, err
	}
	spent.bytes += len(raw)
	if !f.text.mayBeIn(raw) {
		return nil, nil
	}
	e, _, err := v.decode(p.seq, raw)
	if err != nil || !f.text.in(e) {
		return nil, err
	}
	return e, nil
}
