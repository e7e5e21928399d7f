// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package timeline

import (
	"net/http"

	"github.com/platform-ai/platform/pkg/apis/core/v1alpha1"
	"github.com/platform-ai/platform/pkg/event"
	"github.com/platform-ai/platform/pkg/storage/eventlog"
)

// Page answers a get with the events after a position, at most limit of them,
// of the requested types. Errors in the request are API errors.
func (s *Server) Page(req *http.Request, t *Timeline) (*v1alpha1.ExecutionEventPage, error) {
	began := s.opts.Clock.Now()
	p, err := s.page(req, t)
	s.metrics.listed(t, err, s.opts.Clock.Since(began).Seconds())
	return p, err
}

func (s *Server) page(req *http.Request, t *Timeline) (*v1alpha1.ExecutionEventPage, error) {
	q, err := parse(req)
	if err != nil {
		return nil, err
	}
	var stored *eventlog.StreamPage
	if t.session() {
		stored, err = s.opts.Log.SessionPage(req.Context(), t.Namespace, t.Name, q.after, q.limit, q.types)
	} else {
		stored, err = s.opts.Log.TaskPage(req.Context(), t.stream(), q.after, q.limit, q.types)
	}
	if err != nil {
		return nil, err
	}
	p := &v1alpha1.ExecutionEventPage{
		StreamNamespace: t.Namespace, StreamType: t.Type, StreamID: t.Name,
		AfterSeq: q.after, LatestSeq: stored.Latest,
		Events: make([]v1alpha1.ExecutionEvent, len(stored.Events)),
	}
	for i, g := range stored.Gaps {
		if i == 0 {
			p.Gap = new(gap(g))
		}
		if len(stored.Gaps) > 1 {
			p.Gaps = append(p.Gaps, gap(g))
		}
	}
	last := q.after
	for i, e := range stored.Events {
		p.Events[i], last = event.Row(e), e.Seq
	}
	if stored.Next > last {
		p.NextSeq = stored.Next
	}
	return p, nil
}

// gap returns a gap as clients see it. Only retention removes single events; a
// deleted task leaves gaps in the timeline of its session.
func gap(g eventlog.Gap) v1alpha1.EventGap {
	return v1alpha1.EventGap{FromSeq: g.From, ToSeq: g.To, Reason: v1alpha1.GapRetention}
}
