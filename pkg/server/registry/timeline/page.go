// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package timeline

import (
	"net/http"
	"slices"

	"github.com/platform-ai/platform/pkg/apis/core/v1alpha1"
	"github.com/platform-ai/platform/pkg/event"
	"github.com/platform-ai/platform/pkg/storage/eventlog"
)

// Page answers a get with the events after, before or around a position, at most limit of them, of the requested types. It reads
// these events and no others, wherever they are in the stream; only a search (q) reads more, and a page of it may be short (see
// eventlog.Span). Errors in the request are API errors.
func (s *Server) Page(req *http.Request, t *Timeline) (*v1alpha1.ExecutionEventPage, error) {
	began := s.opts.Clock.Now()
	p, err := s.page(req, t)
	s.metrics.listed(t, err, s.opts.Clock.Since(began).Seconds())
	return p, err
}

func (s *Server) page(req *http.Request, t *Timeline) (*v1alpha1.ExecutionEventPage, error) {
	q, err := parsePage(req)
	if err != nil {
		return nil, err
	}
	ctx := req.Context()
	read := func(span eventlog.Span) (*eventlog.StreamPage, error) {
		span.Types, span.Text = q.types, q.text
		if t.session() {
			return s.opts.Log.SessionSpan(ctx, t.Namespace, t.Name, span)
		}
		return s.opts.Log.TaskSpan(ctx, t.stream(), span)
	}
	p := &v1alpha1.ExecutionEventPage{StreamNamespace: t.Namespace, StreamType: t.Type, StreamID: t.Name, StreamUID: t.UID}
	switch {
	case q.around > 0:
		err = around(p, q, read)
	case q.backward:
		err = backward(p, q, read)
	default:
		if err = s.place(ctx, t, q); err != nil {
			return nil, err
		}
		p.AfterSeq, p.Gap = q.after, q.gap
		err = forward(p, eventlog.Span{After: q.after, Limit: q.limit}, read)
	}
	if err != nil {
		return nil, err
	}
	return p, nil
}

// reader reads a part of a timeline.
type reader func(eventlog.Span) (*eventlog.StreamPage, error)

// forward adds to a page the events after a position.
func forward(p *v1alpha1.ExecutionEventPage, span eventlog.Span, read reader) error {
	stored, err := read(span)
	if err != nil {
		return err
	}
	add(p, stored)
	last := span.After
	if n := len(stored.Events); n > 0 {
		last = stored.Events[n-1].Seq
	}
	if stored.Next > last {
		p.NextSeq = stored.Next
	}
	return nil
}

// backward adds to a page the events before a position, the newest first.
func backward(p *v1alpha1.ExecutionEventPage, q *query, read reader) error {
	stored, err := read(eventlog.Span{Backward: true, Before: q.before, Limit: q.limit})
	if err != nil {
		return err
	}
	add(p, stored)
	p.BeforeSeq, p.PrevSeq, p.OldestSeq = q.before, stored.Prev, stored.Head.Oldest
	return nil
}

// around adds to a page the events on both sides of a position, in order. The event at the position, if it is kept and
// selected, is in the middle.
func around(p *v1alpha1.ExecutionEventPage, q *query, read reader) error {
	if q.limit > 1 {
		stored, err := read(eventlog.Span{Backward: true, Before: q.around, Limit: q.limit / 2})
		if err != nil {
			return err
		}
		slices.Reverse(stored.Events)
		slices.Reverse(stored.Gaps)
		add(p, stored)
		p.PrevSeq, p.OldestSeq = stored.Prev, stored.Head.Oldest
	} else {
		p.PrevSeq = q.around
	}
	p.AfterSeq = max(p.PrevSeq-1, 0)
	return forward(p, eventlog.Span{After: q.around - 1, Limit: q.limit - len(p.Events)}, read)
}

// add adds what was read to a page.
func add(p *v1alpha1.ExecutionEventPage, stored *eventlog.StreamPage) {
	p.LatestSeq = stored.Latest
	p.Events = slices.Grow(p.Events, len(stored.Events)+1)
	for _, e := range stored.Events {
		p.Events = append(p.Events, event.Row(e))
	}
	for _, g := range stored.Gaps {
		if p.Gap == nil {
			p.Gap = new(gap(g))
			continue
		}
		if p.Gaps == nil {
			p.Gaps = append(p.Gaps, *p.Gap)
		}
		p.Gaps = append(p.Gaps, gap(g))
	}
}

// gap returns a gap as clients see it. Only retention removes single events; a
// deleted task leaves gaps in the timeline of its session.
func gap(g eventlog.Gap) v1alpha1.EventGap {
	return v1alpha1.EventGap{FromSeq: g.From, ToSeq: g.To, Reason: v1alpha1.GapRetention}
}
