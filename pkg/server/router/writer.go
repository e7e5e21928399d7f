// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package router

import (
	"net/http"
	"time"

	"k8s.io/utils/clock"
)

// writer writes to the client. Each write and each flush has its own deadline. So a client that stops reading does
// not hold a stream and its installation forever, while a client that reads may take as long as it likes.
type writer struct {
	http.ResponseWriter
	control *http.ResponseController
	clock   clock.PassiveClock
	timeout time.Duration
	code    int   // 0 if nothing was sent
	sent    int64 // bytes of the body
}

func newWriter(w http.ResponseWriter, c clock.PassiveClock, timeout time.Duration) *writer {
	out := &writer{ResponseWriter: w, control: http.NewResponseController(w), clock: c, timeout: timeout}
	out.unbound() // the last deadline of the previous request on this connection
	return out
}

// WriteHeader records the status code.
func (w *writer) WriteHeader(code int) {
	if w.code == 0 {
		w.code = code
	}
	w.ResponseWriter.WriteHeader(code)
}

func (w *writer) Write(p []byte) (int, error) {
	w.bound()
	n, err := w.ResponseWriter.Write(p)
	w.unbound()
	w.sent += int64(n)
	return n, err
}

func (w *writer) flush() error {
	w.bound()
	err := w.control.Flush()
	w.unbound()
	return err
}

// finish sets a deadline for what the server sends after the handler.
func (w *writer) finish() { w.bound() }

// bound and unbound ignore errors: only writers in tests do not support deadlines.
func (w *writer) bound() { _ = w.control.SetWriteDeadline(w.clock.Now().Add(w.timeout)) }

// unbound is needed between writes, because HTTP/2 resets a stream whose deadline passes even if nothing is being
// written.
func (w *writer) unbound() { _ = w.control.SetWriteDeadline(time.Time{}) }
