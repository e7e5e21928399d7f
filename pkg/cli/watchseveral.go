// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"k8s.io/client-go/rest"

	"github.com/platform-ai/platform/pkg/apis/core/v1alpha1"
	"github.com/platform-ai/platform/pkg/event"
	"github.com/platform-ai/platform/pkg/sse"
)

// followSeveral prints the events of several tasks and sessions as they arrive, in one stream, until all tasks have ended, or,
// without tasks, until all sessions were deleted. The error describes the end of the first task that did not succeed, in the
// order in which they were named.
func followSeveral(ctx context.Context, api *server, term *terminal, tasks, sessions, types []string, f format) error {
	c, namespace, err := api.client()
	if err != nil {
		return err
	}
	lines := &timeline{terminal: term, out: term.Out, session: true}
	w := &severalWatch{client: c.RESTClient(), namespace: namespace, types: types, gap: lines.gap, event: func(e *v1alpha1.ExecutionEvent) error { return printEvent(term, lines, e, f) }}
	for _, name := range tasks {
		w.all = append(w.all, &watched{kind: v1alpha1.StreamTask, name: name})
	}
	for _, name := range sessions {
		w.all = append(w.all, &watched{kind: v1alpha1.StreamSession, name: name})
	}
	err = persist(ctx, term.clock, func() (sum int64) {
		for _, one := range w.all {
			sum += one.after
		}
		return sum
	}, w.once)
	if err != nil {
		return lost(err, "the stream of "+strings.Join(slices.Concat(tasks, sessions), ", "))
	}
	var first error
	for _, one := range w.all {
		if one.last == "" {
			continue // a session
		}
		if one.kind == v1alpha1.StreamSession {
			note(term.Err, "session "+one.name+" was deleted")
			continue
		}
		err := ended(one.name, one.last, one.why)
		if err != nil && first != nil {
			note(term.Err, err.Error())
		}
		first = cmp.Or(first, err)
	}
	return first
}

// severalWatch follows several tasks and sessions.
type severalWatch struct {
	client    rest.Interface
	namespace string
	types     []string
	all       []*watched // tasks before sessions
	event     func(*v1alpha1.ExecutionEvent) error
	gap       func(v1alpha1.EventGap)
}

// watched is a task or a session that is followed.
type watched struct {
	kind  v1alpha1.StreamType
	name  string
	after int64
	last  v1alpha1.EventType // set when it has ended
	why   string
}

// once opens a stream of what has not ended, and reads it until that is over.
func (w *severalWatch) once(ctx context.Context) error {
	if w.over() {
		return nil
	}
	var r *rest.Request
	for _, one := range w.all {
		switch {
		case one.last != "":
		case r == nil:
			r = w.client.Get().Namespace(w.namespace).Resource(string(one.kind)+"s").Name(one.name).SubResource("stream").Param("after", strconv.FormatInt(one.after, 10))
		default:
			r = r.Param(string(one.kind)+"s", fmt.Sprintf("%s:%d", one.name, one.after))
		}
	}
	return readStream(ctx, r, w.types, func(e *sse.Event) (bool, error) {
		err := w.take(e)
		return w.over(), err
	})
}

// over reports whether all tasks have ended, or, if there are none, all sessions.
func (w *severalWatch) over() bool {
	for _, one := range w.all {
		if one.last == "" && one.kind == w.all[0].kind {
			return false
		}
	}
	return true
}

// take handles one frame.
func (w *severalWatch) take(e *sse.Event) error {
	var f struct {
		StreamType v1alpha1.StreamType `json:"streamType"`
		StreamID   string              `json:"streamID"`
		v1alpha1.EventGap
		event.Complete
	}
	switch e.Type {
	case event.FrameEvent:
		var ev v1alpha1.ExecutionEvent
		if err := json.Unmarshal([]byte(e.Data), &ev); err != nil {
			return &outcome{codeError, fmt.Sprintf("the server sent an event that cannot be read: %v", err)}
		}
		return w.print(&ev)
	case event.FrameGap, event.FrameComplete:
		if err := json.Unmarshal([]byte(e.Data), &f); err != nil {
			return fmt.Errorf("%s of the stream: %w", e.Type, err)
		}
	case event.FrameError:
		return fmt.Errorf("%w by the server: %s", errCut, e.Data)
	}
	one := w.named(f.StreamType, f.StreamID)
	switch {
	case one == nil:
	case e.Type == event.FrameGap:
		if one.after = max(one.after, f.ToSeq); f.Reason == v1alpha1.GapAhead {
			one.after = 0
		}
		w.gap(f.EventGap)
	default:
		one.last = f.Type
	}
	return nil
}

// print prints an event once.
func (w *severalWatch) print(e *v1alpha1.ExecutionEvent) error {
	one := w.named(e.StreamType, e.StreamID)
	if one == nil || e.Seq <= one.after {
		return nil
	}
	one.after = e.Seq
	if e.Type == v1alpha1.EventTaskFailed || e.Type == v1alpha1.EventTaskCancelled {
		one.why = clean(e.Summary)
	}
	if err := w.event(e); err != nil {
		return &outcome{codeError, err.Error()}
	}
	return nil
}

func (w *severalWatch) named(kind v1alpha1.StreamType, name string) *watched {
	for _, one := range w.all {
		if one.kind == kind && one.name == name {
			return one
		}
	}
	return nil
}
