// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package timeline

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strconv"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apiserver/pkg/registry/rest"
	"k8s.io/klog/v2"

	"github.com/platform-ai/platform/pkg/apis/core/v1alpha1"
	"github.com/platform-ai/platform/pkg/event"
	"github.com/platform-ai/platform/pkg/server/registry/resource"
	"github.com/platform-ai/platform/pkg/server/wellformed"
	"github.com/platform-ai/platform/pkg/sse"
	"github.com/platform-ai/platform/pkg/storage/eventlog"
)

var (
	errGone      = errors.New("the object was deleted")
	errHeartbeat = errors.New("a heartbeat is due")
	errComplete  = errors.New("the stream is complete")
)

// Stream returns a handler that answers a request with a stream, until the
// timeline or the request ends. respond writes errors that occur before the
// first byte.
func (s *Server) Stream(t *Timeline, respond rest.Responder) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		whole, err := s.wholeTree(req)
		if err != nil {
			respond.Error(err)
			return
		}
		if s.others != nil && several(wellformed.Query(req)) {
			q, err := parse(req)
			var list []Part
			if err == nil {
				list, err = s.parts(req, t, q.after) //nolint:contextcheck // the request has it
			}
			if err != nil {
				respond.Error(err)
				return
			}
			s.Together(w, req, list, q.types, respond.Error)
			return
		}
		q, err := parseStream(req)
		if err != nil {
			respond.Error(err)
			return
		}
		ctx, end := context.WithCancelCause(req.Context())
		defer end(nil)
		defer s.enter(t.UID, end)() // from here on a deletion ends the stream
		if err := t.Reload(ctx); err != nil {
			respond.Error(err)
			return
		}
		if whole {
			s.streamTree(ctx, w, t, q, respond)
			return
		}
		if err := s.place(ctx, t, q); err != nil {
			respond.Error(err)
			return
		}
		if s.over(ctx, t, q) {
			w.WriteHeader(http.StatusNoContent)
			return
		}
		tail, err := s.tail(t, q)
		if err != nil {
			respond.Error(err)
			return
		}
		defer tail.Close()
		defer s.metrics.opened(t, q.after)()
		r := &run{server: s, timeline: t, query: q, tail: tail, out: newSender(w, &s.opts), last: q.after}
		r.finish(ctx, r.serve(ctx))
	})
}

// over reports whether a client that reconnects by itself, as browsers do, has everything, and nothing can follow.
func (s *Server) over(ctx context.Context, t *Timeline, q *query) bool {
	if !q.resumed || t.session() || t.leaving(ctx) {
		return false
	}
	head, err := s.opts.Log.Head(ctx, t.stream())
	return err == nil && head.Closed && q.after >= head.LatestSeq
}

func (s *Server) tail(t *Timeline, q *query) (*eventlog.Tail, error) {
	if t.session() {
		return s.opts.Log.TailSession(t.Namespace, t.Name, q.after, q.types)
	}
	return s.opts.Log.TailTask(t.stream(), q.after, q.types)
}

// run is one stream being served.
type run struct {
	server   *Server
	timeline *Timeline
	query    *query
	tail     *eventlog.Tail
	out      *sender
	last     int64 // the last seq or cursor that was sent
	caughtUp bool  // the client has once had everything that was stored
}

// begin sends the header and, if the timeline had not reached the position that was asked for, the gap.
func (r *run) begin() error {
	if err := r.out.begin(); err != nil || r.query.gap == nil {
		return err
	}
	return r.send(event.FrameGap, 0, r.timeline.gap(*r.query.gap))
}

// serve sends until something ends the stream, and returns the cause.
func (r *run) serve(ctx context.Context) error {
	if err := r.begin(); err != nil {
		return err
	}
	for {
		wait, cancel := context.WithCancelCause(ctx)
		timer := r.server.opts.Clock.AfterFunc(r.server.opts.Heartbeat, func() { cancel(errHeartbeat) })
		err := r.follow(wait)
		timer.Stop()
		cause := context.Cause(wait)
		cancel(nil)
		switch {
		case !errors.Is(err, context.Canceled):
			return err
		case errors.Is(cause, errGone):
			if err := r.follow(ctx); !errors.Is(err, context.Canceled) { // events that were stored before the end are still sent
				return err
			}
			return errGone
		case !errors.Is(cause, errHeartbeat):
			return err
		}
		if err := r.timeline.allowed(ctx); err != nil {
			return err
		}
		if err := r.out.send(sse.AppendComment(nil, "heartbeat")); err != nil {
			return err
		}
	}
}

// follow sends the stored events and then new ones, until it fails or ctx ends.
func (r *run) follow(ctx context.Context) error {
	for {
		p, err := r.tail.Next(ctx)
		if err != nil {
			return err
		}
		if err := r.timeline.allowed(context.WithoutCancel(ctx)); err != nil { // a heartbeat that is due must not discard the page
			return err
		}
		if err := r.deliver(ctx, p); err != nil {
			return err
		}
	}
}

// sendAt is the number of bytes of frames after which they are sent before more
// are encoded.
const sendAt = 64 << 10

// deliver sends a page, in one write unless it is large.
func (r *run) deliver(ctx context.Context, p *eventlog.StreamPage) error {
	buffer := r.server.buffers.Get().(*[]byte)
	b := (*buffer)[:0]
	defer func() {
		if cap(b) <= 4*sendAt {
			*buffer = b
			r.server.buffers.Put(buffer)
		}
	}()
	add := func(name string, seq int64, data any) (err error) {
		if b, err = appendFrame(b, name, seq, data); err == nil && len(b) >= sendAt {
			err = r.out.send(b)
			b = b[:0]
		}
		return err
	}
	gaps := p.Gaps
	for _, e := range p.Events {
		for ; len(gaps) > 0 && gaps[0].To < e.Seq; gaps = gaps[1:] {
			if err := add(event.FrameGap, gaps[0].To, r.timeline.gap(gap(gaps[0]))); err != nil {
				return err
			}
		}
		if err := add(event.FrameEvent, e.Seq, r.timeline.event(e)); err != nil {
			return err
		}
	}
	for _, g := range gaps {
		if err := add(event.FrameGap, g.To, r.timeline.gap(gap(g))); err != nil {
			return err
		}
	}
	if len(b) > 0 {
		if err := r.out.send(b); err != nil {
			return err
		}
	}
	r.last = max(r.last, p.Next)
	return r.delivered(ctx, p)
}

// delivered decides after a page whether the stream goes on.
func (r *run) delivered(ctx context.Context, p *eventlog.StreamPage) error {
	behind := p.Latest - p.Next
	switch {
	case behind > r.server.opts.MaxLag && r.caughtUp:
		return eventlog.ErrLagging
	case behind > 0:
		return nil
	}
	r.caughtUp = true
	if p.Head.Closed && !r.timeline.leaving(context.WithoutCancel(ctx)) {
		r.last = p.Head.LatestSeq
		return r.complete(p.Head.Terminal)
	}
	return nil
}

// complete sends the last frame of a stream.
func (r *run) complete(t v1alpha1.EventType) error {
	if err := r.send(event.FrameComplete, r.last, completeFrame{event.Complete{LastSeq: r.last, Type: t}, r.timeline.UID}); err != nil {
		return err
	}
	return errComplete
}

// send sends one frame.
func (r *run) send(name string, seq int64, data any) error {
	b, err := appendFrame(nil, name, seq, data)
	if err != nil {
		return err
	}
	return r.out.send(b)
}

// appendFrame appends a frame. A seq of 0 means no id, except for a gap: a client that resumes after it begins at the beginning.
func appendFrame(b []byte, name string, seq int64, data any) ([]byte, error) {
	text, err := json.Marshal(data)
	if err != nil {
		return b, fmt.Errorf("frame %s %d: %w", name, seq, err)
	}
	id := ""
	if seq > 0 || name == event.FrameGap {
		id = strconv.FormatInt(seq, 10)
	}
	return sse.Append(b, id, name, text), nil
}

// finish records why the stream ended. It also reports the cause to the client,
// unless the request or the server ended.
func (r *run) finish(ctx context.Context, err error) {
	switch _, write := errors.AsType[*writeError](err); {
	case write:
		r.server.metrics.failed(r.timeline, reasonWrite)
	case errors.Is(err, errComplete), errors.Is(err, context.Canceled), errors.Is(err, eventlog.ErrShutdown):
	case errors.Is(err, errGone), errors.Is(err, eventlog.ErrDeleted):
		if err := r.complete(r.timeline.deleted()); !errors.Is(err, errComplete) {
			r.server.metrics.failed(r.timeline, reasonWrite)
		}
	case apierrors.IsForbidden(err):
		r.fail(err)
	default:
		r.server.metrics.failed(r.timeline, reasonList)
		klog.FromContext(ctx).Error(err, "Event stream ends early", "streamType", r.timeline.Type, "object", klog.KRef(r.timeline.Namespace, r.timeline.Name), "after", r.last)
		r.fail(resource.StatusError(v1alpha1.Resource(string(r.timeline.Type)+"s"), r.timeline.Name, err))
	}
}

// fail sends an error frame.
func (r *run) fail(err error) {
	f := event.Failure{Code: http.StatusInternalServerError, Message: err.Error()}
	if status, ok := err.(apierrors.APIStatus); ok {
		f.Code = status.Status().Code
	}
	if err := r.send(event.FrameError, 0, f); err != nil {
		r.server.metrics.failed(r.timeline, reasonWrite)
	}
}
