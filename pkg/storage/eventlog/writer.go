// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package eventlog

import (
	"context"
	"fmt"

	"k8s.io/utils/lru"

	"github.com/platform-ai/platform/pkg/apis/core/v1alpha1"
	"github.com/platform-ai/platform/pkg/event"
	"github.com/platform-ai/platform/pkg/storage/quota"
)

// Writer is the writing side of a log. It alone commits. See Append, Trim and DeleteStream.
type Writer struct {
	*shared
	metrics *metrics
	rates   *quota.Rates
	// noted has the refusals that are known to be in their streams; see NoteLimit.
	noted  *lru.Cache
	purger *purger
	// projections are called only by the commit leader.
	projections projections
}

// Append stores events at the end of a stream, all or none, and returns them as stored, in the order given.
// It returns once they are durable and visible.
//
// An event whose dedupKey is already in the stream is not stored again. The first event with that key is
// returned in its place, even if the stream is closed; ErrTrimmed means that it is no longer kept. Other
// errors are *event.FieldError, ErrBadStream, ErrClosed, ErrDeleted, *quota.LimitError, *quota.RateError
// and engine.ErrFull, or the error of a Projection. engine.ErrFailed means that the outcome is unknown. The
// given events are not changed. The values that the returned events point to are shared with watches and
// are read-only.
func (w *Writer) Append(ctx context.Context, s Stream, events []*v1alpha1.ExecutionEvent) ([]*v1alpha1.ExecutionEvent, error) {
	start := w.opts.Clock.Now()
	if err := validate(events); err != nil {
		w.metrics.appended(events, nil, err, w.opts.Clock.Since(start).Seconds())
		return nil, fmt.Errorf("append to %s: %w", s, err)
	}
	return w.AppendSanitized(ctx, s, Sanitize(events))
}

// validate checks events before they are prepared.
func validate(events []*v1alpha1.ExecutionEvent) error {
	for i, e := range events {
		if err := event.Validate(e); err != nil {
			if len(events) > 1 {
				err = fmt.Errorf("item %d: %w", i, err)
			}
			return err
		}
	}
	return nil
}

// AppendSanitized is Append for callers who decide by the content of the events before they append them.
func (w *Writer) AppendSanitized(ctx context.Context, s Stream, events Sanitized) ([]*v1alpha1.ExecutionEvent, error) {
	start := w.opts.Clock.Now()
	t, err := w.append(ctx, s, events)
	w.metrics.appended(events.events, t, err, w.opts.Clock.Since(start).Seconds())
	if err != nil {
		return nil, fmt.Errorf("append to %s: %w", s, err)
	}
	stored, err := t.results()
	if err != nil {
		return nil, fmt.Errorf("append to %s: %w", s, err)
	}
	w.derive(t)
	return stored, nil
}

// append returns when the outcome is known.
func (w *Writer) append(ctx context.Context, s Stream, events Sanitized) (*appendTxn, error) {
	if err := s.check(); err != nil {
		return nil, err
	}
	t, err := w.prepare(s, events)
	if err != nil {
		return nil, err
	}
	t.notes, _ = ctx.Value(noteKey{}).(*notes)
	if ctx.Value(outsideKey{}) != nil {
		for i := range t.events {
			t.events[i].free = true
		}
	}
	if len(t.events) == 0 {
		return t, nil
	}
	if err = w.checkRate(t); err == nil {
		err = t.commit(ctx)
	}
	if err != nil {
		w.NoteLimit(ctx, s, "events", v1alpha1.ReasonEventLimitReached, err)
	}
	return t, err
}

// commit takes a prepared append through the rest of its phases.
func (t *appendTxn) commit(ctx context.Context) error {
	// From here on the caller is answered only when the outcome is known.
	if err := ctx.Err(); err != nil {
		return err
	}
	if err := t.lookAhead(); err != nil {
		return err
	}
	return t.w.engine.Commit(t)
}
