// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package timeline

import (
	"context"
	"errors"

	"github.com/platform-ai/platform/pkg/apis/core/v1alpha1"
	"github.com/platform-ai/platform/pkg/storage/eventlog"
)

// lane is one timeline of a stream of several. Its fields belong to the goroutine that sends, except tail, which the
// lane's own goroutine reads.
type lane struct {
	timeline *Timeline
	tail     *eventlog.Tail
	last     int64              // the last position that was sent
	gap      *v1alpha1.EventGap // before the first event; nil for none
	caughtUp bool
	running  bool
	over     bool // the last frame was sent

	ctx   context.Context //nolint:containedctx // a deletion ends the lane, and with it this context
	end   context.CancelCauseFunc
	leave func()
	done  chan struct{} // closed when the lane's goroutine has ended
}

// pageOf is what a lane has read.
type pageOf struct {
	lane *lane
	page *eventlog.StreamPage
	err  error
}

// follow reads pages, one ahead of what is sent, until that fails, the lane ends or ctx does.
func (l *lane) follow(ctx context.Context, pages chan<- pageOf) {
	l.running = true
	go func() {
		defer close(l.done)
		for ended := false; ; {
			p, err := l.tail.Next(l.ctx) //nolint:contextcheck // it is derived from ctx
			if errors.Is(err, context.Canceled) {
				if !errors.Is(context.Cause(l.ctx), errGone) { //nolint:contextcheck // as above
					return
				}
				if !ended { // what was stored before the end is still sent
					ended = true
					continue
				}
				err = errGone
			}
			select {
			case pages <- pageOf{l, p, err}:
			case <-ctx.Done():
				return
			}
			if err != nil {
				return
			}
		}
	}()
}

// open begins to follow a timeline. A deletion ends it from here on.
func (t *together) open(ctx context.Context, of *Timeline, q *query) (*lane, error) {
	l := &lane{timeline: of, done: make(chan struct{})}
	l.ctx, l.end = context.WithCancelCause(ctx)
	l.leave = t.server.enter(of.UID, l.end)
	t.lanes = append(t.lanes, l)
	if err := of.Reload(ctx); err != nil {
		return nil, err
	}
	err := t.server.place(ctx, of, q)
	if err != nil {
		return nil, err
	}
	l.last, l.gap = q.after, q.gap
	l.tail, err = t.server.tail(of, q)
	return l, err
}

// close ends all parts and waits for them.
func (t *together) close() {
	for _, l := range t.lanes {
		l.end(nil)
		l.leave()
		if l.running {
			<-l.done
		}
		if l.tail != nil {
			l.tail.Close()
		}
	}
}
