// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"errors"
	"fmt"
	"testing"

	"github.com/platform-ai/platform/pkg/apis/core/v1alpha1"
	"github.com/platform-ai/platform/pkg/event"
	"github.com/platform-ai/platform/pkg/sse"
)

// A stream that has not reached the position is another one than before, and all of its events are shown. Events of another task
// of the name end it.
func TestStreamOfAnotherLife(t *testing.T) {
	var got []int64
	s := &stream{
		name: "a", after: 50,
		event: func(e *v1alpha1.ExecutionEvent) error { got = append(got, e.Seq); return nil },
		gap:   func(g v1alpha1.EventGap) { got = append(got, -g.ToSeq) },
	}
	take := func(kind, data string) error {
		_, err := s.take(&sse.Event{Type: kind, Data: data})
		return err
	}
	for _, frame := range [][2]string{
		{event.FrameGap, `{"fromSeq":3,"toSeq":50,"reason":"ahead","streamUID":"u"}`},
		{event.FrameEvent, `{"seq":1,"type":"TaskStarted","streamUID":"u"}`},
		{event.FrameGap, `{"fromSeq":2,"toSeq":4,"reason":"retention","streamUID":"u"}`},
		{event.FrameEvent, `{"seq":4,"type":"ModelMessage","streamUID":"u"}`},
		{event.FrameEvent, `{"seq":5,"type":"ModelMessage","streamUID":"u"}`},
	} {
		if err := take(frame[0], frame[1]); err != nil {
			t.Fatal(err)
		}
	}
	if text := fmt.Sprint(got); text != "[-50 1 -4 5]" {
		t.Errorf("shown: %s", text)
	}
	var ended *outcome
	if err := take(event.FrameEvent, `{"seq":6,"type":"ModelMessage","streamUID":"v"}`); !errors.As(err, &ended) || ended.code != codeUnknown {
		t.Errorf("an event of another task of the name: %v", err)
	}
}
