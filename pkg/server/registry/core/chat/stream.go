// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package chat

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"strconv"
	"sync"
	"time"

	"k8s.io/utils/clock"

	"github.com/platform-ai/platform/pkg/server/chat"
	"github.com/platform-ai/platform/pkg/server/registry/resource"
	"github.com/platform-ai/platform/pkg/sse"
)

// heartbeat is the longest time without a byte on a stream.
const heartbeat = 10 * time.Second

// stream answers a turn as server-sent events. What is refused before the turn begins is an ordinary error.
func (r *Resource) stream(ctx context.Context, turn chat.Request, answer resource.Answer) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	out := &sender{w: answer.Writer, controller: http.NewResponseController(answer.Writer), clock: r.o.Clock, timeout: r.o.WriteTimeout}
	turn.Observe = out.frame
	t, err := r.o.Service.Begin(ctx, turn)
	if err != nil {
		answer.Error(err)
		return
	}
	defer t.Close()
	out.begin()
	defer out.end()
	var beats sync.WaitGroup
	defer beats.Wait()
	defer cancel()
	beats.Go(func() { // ends with ctx
		ticker := r.o.Clock.NewTicker(min(heartbeat, r.o.WriteTimeout/3))
		defer ticker.Stop()
		for {
			select {
			case <-ticker.C():
				if out.send(sse.AppendComment(nil, "heartbeat")) != nil {
					cancel()
				}
			case <-ctx.Done():
				return
			}
		}
	})
	_, _ = t.Run() //nolint:contextcheck // the turn has this context; its last frame reports an error
}

// sender writes to a client that may be slow or gone. It is safe for concurrent use.
type sender struct {
	w          http.ResponseWriter
	controller *http.ResponseController
	clock      clock.PassiveClock
	timeout    time.Duration

	mu       sync.Mutex
	deadline time.Time
	failed   error
}

// begin sends the header.
func (s *sender) begin() {
	h := s.w.Header()
	h.Set("Content-Type", sse.ContentType)
	h.Set("Cache-Control", "no-cache")
	h.Set("X-Accel-Buffering", "no") // keeps proxies from buffering
	h.Set("X-Content-Type-Options", "nosniff")
	s.w.WriteHeader(http.StatusOK)
}

// end removes the deadline from the connection, which may serve further requests.
func (s *sender) end() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.failed == nil {
		s.failed = s.controller.SetWriteDeadline(time.Time{})
	}
}

func (s *sender) frame(f chat.Frame) error {
	data, err := json.Marshal(f.Envelope)
	if err != nil {
		return fmt.Errorf("frame %s: %w", f.Type, err)
	}
	return s.send(sse.Append(nil, strconv.FormatInt(f.Seq, 10), f.Type, data))
}

// send writes a frame and flushes it. After an error nothing more is written.
func (s *sender) send(frame []byte) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.failed != nil {
		return s.failed
	}
	// Heartbeats move the deadline in time when nothing else is sent.
	if now := s.clock.Now(); s.deadline.Sub(now) < s.timeout/2 {
		s.deadline = now.Add(s.timeout)
		if s.failed = s.controller.SetWriteDeadline(s.deadline); s.failed != nil {
			return s.failed
		}
	}
	if _, s.failed = s.w.Write(frame); s.failed != nil {
		return s.failed
	}
	s.failed = s.flush()
	return s.failed
}

// flush looks beneath the writers of the handler chain, which flush without reporting a failure.
func (s *sender) flush() error {
	for w := s.w; ; {
		if f, ok := w.(interface{ FlushError() error }); ok {
			return f.FlushError()
		}
		inner, ok := w.(interface{ Unwrap() http.ResponseWriter })
		if !ok {
			return s.controller.Flush()
		}
		w = inner.Unwrap()
	}
}
