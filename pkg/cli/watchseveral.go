// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"

	"k8s.io/client-go/rest"

	"github.com/platform-ai/platform/pkg/apis/core/v1alpha1"
	"github.com/platform-ai/platform/pkg/event"
	"github.com/platform-ai/platform/pkg/sse"
)

// followSeveral prints the events of several tasks as they arrive, in one stream, until all of them have ended. The error describes
// the end of the first one that did not succeed, in the order in which they were named.
func (a *app) followSeveral(ctx context.Context, names, types []string, f format) error {
	c, namespace, err := a.client()
	if err != nil {
		return err
	}
	lines := &timeline{app: a, out: a.Out, session: true}
	w := &severalWatch{client: c.RESTClient(), namespace: namespace, types: types, gap: lines.gap, event: func(e *v1alpha1.ExecutionEvent) error { return a.event(lines, e, f) }}
	for _, name := range names {
		w.tasks = append(w.tasks, &watched{name: name})
	}
	err = persist(ctx, a.clock, func() (sum int64) {
		for _, t := range w.tasks {
			sum += t.after
		}
		return sum
	}, w.once)
	if err != nil {
		return lost(err, "the stream of "+strings.Join(names, ", "))
	}
	var first error
	for _, t := range w.tasks {
		err := ended(t.name, t.last, t.why)
		if err != nil && first != nil {
			note(a.Err, err.Error())
		}
		first = cmp.Or(first, err)
	}
	return first
}

// severalWatch follows several tasks.
type severalWatch struct {
	client    rest.Interface
	namespace string
	types     []string
	tasks     []*watched
	event     func(*v1alpha1.ExecutionEvent) error
	gap       func(v1alpha1.EventGap)
}

// watched is a task that is followed.
type watched struct {
	name  string
	after int64
	last  v1alpha1.EventType // set when it has ended
	why   string
}

// once opens a stream of the tasks that have not ended, and reads it until they all have.
func (w *severalWatch) once(ctx context.Context) error {
	var left []*watched
	for _, t := range w.tasks {
		if t.last == "" {
			left = append(left, t)
		}
	}
	if len(left) == 0 {
		return nil
	}
	r := w.client.Get().Namespace(w.namespace).Resource("tasks").Name(left[0].name).SubResource("stream").Param("after", strconv.FormatInt(left[0].after, 10))
	for _, t := range left[1:] {
		r = r.Param("tasks", fmt.Sprintf("%s:%d", t.name, t.after))
	}
	n := len(left)
	return readStream(ctx, r, w.types, func(e *sse.Event) (bool, error) {
		over, err := w.take(e)
		if over {
			n--
		}
		return n == 0, err
	})
}

// take handles one frame, and reports whether a task has ended with it.
func (w *severalWatch) take(e *sse.Event) (bool, error) {
	var f struct {
		StreamID string `json:"streamID"`
		v1alpha1.EventGap
		event.Complete
	}
	switch e.Type {
	case event.FrameEvent:
		var ev v1alpha1.ExecutionEvent
		if err := json.Unmarshal([]byte(e.Data), &ev); err != nil {
			return false, &outcome{codeError, fmt.Sprintf("the server sent an event that cannot be read: %v", err)}
		}
		return false, w.print(&ev)
	case event.FrameGap, event.FrameComplete:
		if err := json.Unmarshal([]byte(e.Data), &f); err != nil {
			return false, fmt.Errorf("%s of the stream: %w", e.Type, err)
		}
	case event.FrameError:
		return false, fmt.Errorf("%w by the server: %s", errCut, e.Data)
	}
	t := w.named(f.StreamID)
	if t == nil {
		return false, nil
	}
	if e.Type == event.FrameGap {
		t.after = max(t.after, f.ToSeq)
		w.gap(f.EventGap)
		return false, nil
	}
	t.last = f.Type
	return true, nil
}

// print prints an event once.
func (w *severalWatch) print(e *v1alpha1.ExecutionEvent) error {
	t := w.named(e.TaskName)
	if t == nil || e.Seq <= t.after {
		return nil
	}
	t.after = e.Seq
	if e.Type == v1alpha1.EventTaskFailed || e.Type == v1alpha1.EventTaskCancelled {
		t.why = clean(e.Summary)
	}
	if err := w.event(e); err != nil {
		return &outcome{codeError, err.Error()}
	}
	return nil
}

func (w *severalWatch) named(name string) *watched {
	for _, t := range w.tasks {
		if t.name == name {
			return t
		}
	}
	return nil
}
