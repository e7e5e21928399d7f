// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package trace

import (
	"fmt"
	"net/url"
	"strconv"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/platform-ai/platform/pkg/apis/core/v1alpha1"
	"github.com/platform-ai/platform/pkg/readmodel/trace"
)

const (
	// maxSpans is how many spans a part of a trace can be asked for.
	maxSpans = 10_000
	// eventsPerSpan bounds the events that are read for a part, so that the cost of a part does not depend on how
	// many events are between its spans.
	eventsPerSpan = 8
)

// parsePart parses what bounds the groups.
func (q *query) parsePart(v url.Values) (err error) {
	if s := v.Get("spans"); v.Has("spans") {
		if q.spans, err = strconv.ParseInt(s, 10, 64); err != nil || q.spans < 1 || q.spans > maxSpans {
			return apierrors.NewBadRequest(fmt.Sprintf("spans: %q: must be a number from 1 to %d", s, maxSpans))
		}
	}
	if s := v.Get("after"); v.Has("after") {
		if q.after, err = strconv.ParseInt(s, 10, 64); err != nil || q.after < 0 {
			return apierrors.NewBadRequest(fmt.Sprintf("after: %q: must be a number from 0", s))
		}
	}
	switch {
	case q.spans > 0 && q.timeline:
		return apierrors.NewBadRequest("spans: a part of a trace has no timeline; ask with timeline=false, and for its events with tasks/events")
	case q.after > 0 && q.spans == 0:
		return apierrors.NewBadRequest("after: says where a part of a trace begins; ask with spans, which bounds the part")
	}
	return nil
}

// fold starts the fold of the trace, or of a part of it.
func (w *writer) fold(emit trace.Emit) *trace.Fold {
	if w.query.after > 0 {
		return trace.NewPart(w.task.Name, emit)
	}
	return trace.New(w.task.Name, emit)
}

// partEnd finds where a part of a trace ends: before the span that would be one too many, when a group has as many rows, and in
// any case after eventsPerSpan times as many events. If most is 0, there is no such end.
type partEnd struct {
	most, begun, events, longest int64
	rows                         map[trace.Group]int64
}

// counting returns emit, and counts the rows of each group.
func (p *partEnd) counting(emit trace.Emit) trace.Emit {
	p.rows = map[trace.Group]int64{}
	return func(g trace.Group, row any) {
		if g != trace.CriticalPath { // its spans are counted, and between them it may be idle
			p.rows[g]++
			p.longest = max(p.longest, p.rows[g])
		}
		emit(g, row)
	}
}

// before reports whether the part ends before the next event.
func (p *partEnd) before(e *v1alpha1.ExecutionEvent) bool {
	if p.most == 0 {
		return false
	}
	if trace.Begins(e.Type) {
		p.begun++
	}
	p.events++
	return p.begun > p.most || p.longest >= p.most || p.events > p.most*eventsPerSpan
}
