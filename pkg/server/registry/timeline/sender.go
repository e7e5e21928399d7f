// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package timeline

import (
	"fmt"
	"net/http"
	"time"

	"k8s.io/utils/clock"

	"github.com/platform-ai/platform/pkg/sse"
)

// writeError is a failure to send to the client.
type writeError struct{ err error }

func (e *writeError) Error() string { return "write to the client: " + e.err.Error() }
func (e *writeError) Unwrap() error { return e.err }

// sender writes to a client that may be slow or gone. Each write has a
// deadline.
//
// On HTTP/2, setting a deadline costs a message to the connection's loop, and a
// deadline that passes while nothing is written resets the stream. So the
// deadline is moved only when less than half of it is left. There are at least
// three heartbeats in one deadline, so they move it in time when nothing else
// is sent.
type sender struct {
	w          http.ResponseWriter
	controller *http.ResponseController
	flush      func() error
	clock      clock.PassiveClock
	timeout    time.Duration
	deadline   time.Time
}

// newSender fails if the connection does not support deadlines.
func newSender(w http.ResponseWriter, o *Options) (*sender, error) {
	s := &sender{w: w, controller: http.NewResponseController(w), clock: o.Clock, timeout: o.WriteTimeout}
	s.flush = flusher(w, s.controller)
	if err := s.extend(); err != nil {
		return nil, fmt.Errorf("event stream: %w", err)
	}
	return s, nil
}

// flusher returns a func that flushes and reports a failure. The writers that
// the handler chain wraps around w flush without returning an error, so it
// looks beneath them.
func flusher(w http.ResponseWriter, c *http.ResponseController) func() error {
	for {
		if f, ok := w.(interface{ FlushError() error }); ok {
			return f.FlushError
		}
		inner, ok := w.(interface{ Unwrap() http.ResponseWriter })
		if !ok {
			return c.Flush
		}
		w = inner.Unwrap()
	}
}

func (s *sender) extend() error {
	now := s.clock.Now()
	if s.deadline.Sub(now) > s.timeout/2 {
		return nil
	}
	s.deadline = now.Add(s.timeout)
	return s.controller.SetWriteDeadline(s.deadline)
}

// begin sends the header, so that the client knows that it is connected.
func (s *sender) begin() error {
	h := s.w.Header()
	h.Set("Content-Type", sse.ContentType)
	h.Set("Cache-Control", "no-cache")
	h.Set("X-Accel-Buffering", "no") // keeps proxies from buffering
	h.Set("X-Content-Type-Options", "nosniff")
	s.w.WriteHeader(http.StatusOK)
	return s.send(nil)
}

// send writes frames and flushes them. Its errors are of type *writeError.
func (s *sender) send(frames []byte) error {
	if err := s.extend(); err != nil {
		return &writeError{err}
	}
	if len(frames) > 0 {
		if _, err := s.w.Write(frames); err != nil {
			return &writeError{err}
		}
	}
	if err := s.flush(); err != nil {
		return &writeError{err}
	}
	return nil
}
