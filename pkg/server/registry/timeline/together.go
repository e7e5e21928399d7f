// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package timeline

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/klog/v2"

	"github.com/platform-ai/platform/pkg/apis/core/v1alpha1"
	"github.com/platform-ai/platform/pkg/event"
	"github.com/platform-ai/platform/pkg/server/registry/resource"
	"github.com/platform-ai/platform/pkg/sse"
	"github.com/platform-ai/platform/pkg/storage/eventlog"
)

// Part is one of several timelines in a stream.
type Part struct {
	*Timeline
	// After is the position that the part begins after.
	After int64
}

// Together answers a request with one stream of several timelines, until all tasks among them have ended, a session
// keeps it open, or the request ends. Its frames are those of Stream, with the stream's type and name in each of them.
// The id of a frame has the positions in all parts, in their order, with dots between them; Last-Event-ID resumes all.
// fail writes errors that occur before the first byte.
//
// It exists so that a page which shows many runs needs one connection, because browsers have few for each host. Each part is a
// tail of its own and ends with its own stream_complete. Package registry/core checks that the caller may get the stream of
// each part, and refuses workers.
func (s *Server) Together(w http.ResponseWriter, req *http.Request, parts []Part, only []v1alpha1.EventType, fail func(error)) {
	t := &together{server: s, pages: make(chan pageOf)}
	resumed, err := resume(parts, req.Header.Get(sse.LastEventID))
	if err != nil {
		fail(err)
		return
	}
	ctx, end := context.WithCancel(req.Context())
	defer t.close()
	defer end()
	over := true
	for i := range parts {
		q := &query{after: parts[i].After, types: only, resumed: resumed}
		l, err := t.open(ctx, parts[i].Timeline, q)
		if err != nil {
			fail(err)
			return
		}
		over = over && s.over(ctx, l.timeline, q)
	}
	if over {
		w.WriteHeader(http.StatusNoContent)
		return
	}
	t.out = newSender(w, &s.opts)
	for _, l := range t.lanes {
		defer s.metrics.opened(l.timeline, l.last)()
		l.follow(ctx, t.pages)
	}
	t.finish(ctx, t.serve(ctx))
}

// resume sets the positions of parts to those of a frame's id, if there is one.
func resume(parts []Part, id string) (bool, error) {
	if id == "" {
		return false, nil
	}
	positions := strings.Split(id, ".")
	if len(positions) != len(parts) {
		return false, apierrors.NewBadRequest(fmt.Sprintf("%s: %q: must have %d positions with dots between them, one for each task and session", sse.LastEventID, clip(id), len(parts)))
	}
	for i, text := range positions {
		n, err := position(sse.LastEventID, text)
		if err != nil {
			return false, err
		}
		parts[i].After = n
	}
	return true, nil
}

// together is one stream of several timelines being served.
type together struct {
	server *Server
	out    *sender
	lanes  []*lane
	pages  chan pageOf
	buffer []byte
}

// frameOf is the data of a frame that is not an event.
type frameOf struct {
	StreamType v1alpha1.StreamType `json:"streamType"`
	StreamID   string              `json:"streamID"`
	StreamUID  types.UID           `json:"streamUID,omitempty"`
	*v1alpha1.EventGap
	*event.Complete
}

// serve sends until all parts have ended or something ends the stream, and returns the cause.
func (t *together) serve(ctx context.Context) error {
	if err := t.out.begin(); err != nil {
		return err
	}
	if err := t.sendGaps(); err != nil {
		return err
	}
	timer := t.server.opts.Clock.NewTimer(t.server.opts.Heartbeat)
	defer timer.Stop()
	for left := len(t.lanes); left > 0; {
		select {
		case p := <-t.pages:
			if p.lane.over {
				continue // stored after the last frame
			}
			ended, err := t.page(ctx, p)
			if err != nil {
				return err
			}
			if ended {
				p.lane.over = true
				left--
			}
		case <-timer.C():
			for _, l := range t.lanes {
				if err := l.timeline.allowed(ctx); err != nil {
					return err
				}
			}
			if err := t.out.send(sse.AppendComment(nil, "heartbeat")); err != nil {
				return err
			}
			timer.Reset(t.server.opts.Heartbeat)
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	return errComplete
}

// sendGaps sends the gaps of parts that begin anew.
func (t *together) sendGaps() error {
	for _, l := range t.lanes {
		if l.gap == nil {
			continue
		}
		if err := t.send(l, event.FrameGap, frameOf{EventGap: l.gap}); err != nil {
			return err
		}
	}
	return nil
}

// page sends what one part has that is new. It reports whether that part has ended.
func (t *together) page(ctx context.Context, p pageOf) (ended bool, err error) {
	l := p.lane
	switch {
	case errors.Is(p.err, errGone), errors.Is(p.err, eventlog.ErrDeleted):
		return true, t.send(l, event.FrameComplete, frameOf{Complete: &event.Complete{LastSeq: l.last, Type: l.timeline.deleted()}})
	case p.err != nil:
		return false, p.err
	}
	if err := l.timeline.allowed(ctx); err != nil {
		return false, err
	}
	if err := t.deliver(l, p.page); err != nil {
		return false, err
	}
	switch behind := p.page.Latest - p.page.Next; {
	case behind > t.server.opts.MaxLag && l.caughtUp:
		return false, eventlog.ErrLagging
	case behind > 0:
		return false, nil
	}
	l.caughtUp = true
	if !p.page.Head.Closed || l.timeline.leaving(ctx) {
		return false, nil
	}
	l.end(nil)
	l.last = p.page.Head.LatestSeq
	return true, t.send(l, event.FrameComplete, frameOf{Complete: &event.Complete{LastSeq: l.last, Type: p.page.Head.Terminal}})
}

// finish reports the cause of the end to the client, unless the request or the server ended.
func (t *together) finish(ctx context.Context, err error) {
	_, write := errors.AsType[*writeError](err)
	if write || errors.Is(err, errComplete) || errors.Is(err, context.Canceled) || errors.Is(err, eventlog.ErrShutdown) {
		return
	}
	if !apierrors.IsForbidden(err) {
		klog.FromContext(ctx).Error(err, "Stream of several tasks and sessions ends early", "parts", len(t.lanes))
		err = resource.StatusError(v1alpha1.Resource("eventstreams"), "", err)
	}
	f := event.Failure{Code: http.StatusInternalServerError, Message: err.Error()}
	if status, ok := err.(apierrors.APIStatus); ok {
		f.Code = status.Status().Code
	}
	if b, err := appendFrame(nil, event.FrameError, 0, f); err == nil {
		_ = t.out.send(b) // the stream ends in any case
	}
}
