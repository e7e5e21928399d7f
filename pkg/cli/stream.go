// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strconv"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	"k8s.io/utils/clock"

	"github.com/platform-ai/platform/pkg/apis/core/v1alpha1"
	"github.com/platform-ai/platform/pkg/event"
	"github.com/platform-ai/platform/pkg/sse"
)

// stream follows the events of a task or a session and reopens connections that
// are cut.
type stream struct {
	client    rest.Interface
	clock     clock.Clock
	namespace string
	resource  string // tasks or sessions
	name      string
	after     int64
	uid       types.UID // of the object whose events came; empty before the first
	types     []string
	// event is called for each event once, in order.
	event func(e *v1alpha1.ExecutionEvent) error
	// gap is called for events that are no longer kept.
	gap func(g v1alpha1.EventGap)
}

// follow reads until the stream is complete and returns the type that it ended
// with. It returns an *outcome with codeUnknown if the stream cannot be
// resumed.
func (s *stream) follow(ctx context.Context) (last v1alpha1.EventType, err error) {
	err = persist(ctx, s.clock, func() int64 { return s.after }, func(ctx context.Context) error {
		last, err = s.once(ctx)
		return err
	})
	if lost, ok := errors.AsType[*cutError](err); ok {
		return "", &outcome{codeUnknown, fmt.Sprintf("the stream of %s was cut after event %d and could not be resumed: %s", s.name, s.after, explain(lost.err))}
	}
	return last, err
}

// once opens the stream and reads it to its end.
func (s *stream) once(ctx context.Context) (last v1alpha1.EventType, err error) {
	r := s.client.Get().Namespace(s.namespace).Resource(s.resource).Name(s.name).SubResource("stream").Param("after", strconv.FormatInt(s.after, 10))
	err = readStream(ctx, r, s.types, func(e *sse.Event) (bool, error) {
		last, err = s.take(e)
		return last != "", err
	})
	return last, err
}

// readStream sends a request for a stream of these types of events, or of all, and gives each frame to take until that says
// that the stream is over. A stream that ends before is errCut.
func readStream(ctx context.Context, r *rest.Request, types []string, take func(*sse.Event) (over bool, err error)) error {
	r = r.SetHeader("Accept", sse.ContentType)
	for _, t := range types {
		r = r.Param("type", t)
	}
	body, err := r.Stream(ctx)
	if err != nil {
		return err
	}
	defer func() { _ = body.Close() }() // it was only read
	in := sse.NewReader(body, sse.Options{})
	for {
		e, err := in.Next()
		if errors.Is(err, io.EOF) {
			return errCut
		}
		if err != nil {
			return fmt.Errorf("stream: %w", err)
		}
		if over, err := take(e); over || err != nil {
			return err
		}
	}
}

// take handles one frame. It returns the type that the stream ended with, if it
// has ended.
func (s *stream) take(e *sse.Event) (v1alpha1.EventType, error) {
	switch e.Type {
	case event.FrameEvent:
		var ev struct {
			v1alpha1.ExecutionEvent
			StreamUID types.UID `json:"streamUID"`
		}
		if err := json.Unmarshal([]byte(e.Data), &ev); err != nil {
			return "", &outcome{codeError, fmt.Sprintf("the server sent an event that cannot be read: %v", err)}
		}
		if s.uid != "" && ev.StreamUID != "" && ev.StreamUID != s.uid {
			return "", &outcome{codeUnknown, fmt.Sprintf("%s was deleted after event %d, and another of its name was created", s.name, s.after)}
		}
		s.uid = ev.StreamUID
		if ev.Seq <= s.after {
			return "", nil
		}
		s.after = ev.Seq
		if err := s.event(&ev.ExecutionEvent); err != nil {
			return "", &outcome{codeError, err.Error()}
		}
	case event.FrameComplete:
		var c event.Complete
		if err := json.Unmarshal([]byte(e.Data), &c); err != nil {
			return "", fmt.Errorf("end of the stream: %w", err)
		}
		return c.Type, nil
	case event.FrameGap:
		var g v1alpha1.EventGap
		if err := json.Unmarshal([]byte(e.Data), &g); err != nil {
			return "", fmt.Errorf("gap of the stream: %w", err)
		}
		if s.after = max(s.after, g.ToSeq); g.Reason == v1alpha1.GapAhead {
			s.after = 0
		}
		if s.gap != nil {
			s.gap(g)
		}
	case event.FrameError:
		return "", fmt.Errorf("%w by the server: %s", errCut, e.Data)
	}
	return "", nil
}
