// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package timeline

import (
	"context"
	"errors"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/platform-ai/platform/pkg/apis/core/v1alpha1"
	"github.com/platform-ai/platform/pkg/event"
	"github.com/platform-ai/platform/pkg/storage/eventlog"
)

// This file has the one rule for positions that a timeline has not reached. No client can have such a position from this
// timeline: it comes from an earlier object of the same name, from a store that has lost or was restored to an earlier state,
// or from another kind of position. Waiting for the timeline to get there would leave out everything up to it. So what is
// asked for begins anew, and a gap says so first.

// Ahead returns the gap between the newest position of a timeline and one that it has not reached; nil if it has.
func Ahead(after, latest int64) *v1alpha1.EventGap {
	if after <= latest {
		return nil
	}
	return &v1alpha1.EventGap{FromSeq: latest + 1, ToSeq: after, Reason: v1alpha1.GapAhead}
}

// beginAnew makes a query begin at the beginning if the timeline has not reached its position.
func (q *query) beginAnew(latest int64) {
	if q.gap = Ahead(q.after, latest); q.gap != nil {
		q.after, q.resumed = 0, false
	}
}

// place checks the position of a stream's query.
func (s *Server) place(ctx context.Context, t *Timeline, q *query) error {
	if q.after == 0 {
		return nil
	}
	latest, err := s.latest(ctx, t)
	if err == nil {
		q.beginAnew(latest)
	}
	return err
}

// latest returns the newest position of a timeline. That of a deleted stream is not known; it ends in any case.
func (s *Server) latest(ctx context.Context, t *Timeline) (int64, error) {
	if t.session() {
		p, err := s.opts.Log.SessionSpan(ctx, t.Namespace, t.Name, eventlog.Span{Backward: true, Limit: 1})
		if err != nil {
			return 0, err
		}
		return p.Latest, nil
	}
	head, err := s.opts.Log.Head(ctx, t.stream())
	if errors.Is(err, eventlog.ErrDeleted) {
		return maxPosition, nil
	}
	return head.LatestSeq, err
}

// Frames have the UID of the object whose stream they are from, so that a client can tell it from another one of that name.

type eventFrame struct {
	v1alpha1.ExecutionEvent
	StreamUID types.UID `json:"streamUID,omitempty"`
}

type gapFrame struct {
	v1alpha1.EventGap
	StreamUID types.UID `json:"streamUID,omitempty"`
}

type completeFrame struct {
	event.Complete
	StreamUID types.UID `json:"streamUID,omitempty"`
}

func (t *Timeline) event(e *v1alpha1.ExecutionEvent) eventFrame {
	return eventFrame{event.Row(e), t.UID}
}

func (t *Timeline) gap(g v1alpha1.EventGap) gapFrame { return gapFrame{g, t.UID} }

// eventOf is the frame of an event in the stream of a tree, whose tasks have streams of their own.
func eventOf(e *v1alpha1.ExecutionEvent) eventFrame {
	f := eventFrame{ExecutionEvent: event.Row(e)}
	if task := metav1.GetControllerOfNoCopy(e); task != nil {
		f.StreamUID = task.UID
	}
	return f
}
