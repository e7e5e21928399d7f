// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package router

import (
	"net/http"
	"time"

	"k8s.io/utils/clock"
)

// writer is the way to the client. Each write and each flush has a deadline of its own, so that a client that stopped
// reading does not hold a stream, and its installation, for ever, and one that reads may take as long as it likes.
type writer struct {
	http.ResponseWriter
	control *http.ResponseController
	clock   clock.PassiveClock
	timeout time.Duration
	code    int   // 0 while nothing was sent
	sent    int64 // bytes of the body
}

func newWriter(w http.ResponseWriter, c clock.PassiveClock, timeout time.Duration) *writer {
	out := &writer{ResponseWriter: w, control: http.NewResponseController(w), clock: c, timeout: timeout}
	out.unbound() // the last deadline of the connection's request before
	return out
}

// WriteHeader remembers the status.
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

// finish bounds what the server sends after the handler.
func (w *writer) finish() { w.bound() }

// bound and unbound ignore an error: a writer that knows no deadline is a test's.
func (w *writer) bound() { _ = w.control.SetWriteDeadline(w.clock.Now().Add(w.timeout)) }

// unbound is needed between writes: HTTP/2 ends a stream whose deadline passes even while nothing is written.
func (w *writer) unbound() { _ = w.control.SetWriteDeadline(time.Time{}) }
