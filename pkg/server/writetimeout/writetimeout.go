// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

// Package writetimeout bounds how long a client may take to accept one part of an answer. Between the parts an answer may pause for as
// long as it likes. Streams of events and of chats, backups, the vendors' APIs and the router are bounded by it. A log that is
// followed is not: a reader of a text cannot resume it, so one that pauses may take as long as it likes.
package writetimeout

import (
	"net/http"
	"sync"
	"time"
)

// How long a client may take, unless the operator says otherwise.
const (
	// Server is for clients of the API server (--stream-write-timeout).
	Server = 45 * time.Second
	// Router is for clients of the router (--write-timeout).
	Router = 30 * time.Second
)

// Writer writes to a client. A write or flush that takes too long fails, and so do all later ones.
//
// A write deadline of the connection is set only when the time is over. Setting one before each write and removing it afterwards
// would cost two messages to the connection's goroutine on HTTP/2, where a deadline that passes between writes also breaks the
// stream.
type Writer struct {
	http.ResponseWriter

	control *http.ResponseController
	timeout time.Duration
	timer   *time.Timer

	mu      sync.Mutex // guards writing; cut holds it, so that cut never runs after the handler
	writing bool
}

// Flush sends what was written to w and reports a failure. The writers that a handler chain wraps around another flush without
// returning an error, so Flush looks beneath them.
func Flush(w http.ResponseWriter) error {
	for next := w; ; {
		if f, ok := next.(interface{ FlushError() error }); ok {
			return f.FlushError()
		}
		inner, ok := next.(interface{ Unwrap() http.ResponseWriter })
		if !ok {
			return http.NewResponseController(w).Flush()
		}
		next = inner.Unwrap()
	}
}

// NewWriter returns a Writer for one request. It is not safe for concurrent use.
func NewWriter(w http.ResponseWriter, timeout time.Duration) *Writer {
	return &Writer{ResponseWriter: w, control: http.NewResponseController(w), timeout: timeout}
}

// Write writes a part of the body.
func (w *Writer) Write(p []byte) (int, error) {
	w.begin()
	defer w.end()
	return w.ResponseWriter.Write(p)
}

// FlushError sends what was written.
func (w *Writer) FlushError() error {
	w.begin()
	defer w.end()
	return Flush(w.ResponseWriter)
}

// Unwrap is for http.ResponseController.
func (w *Writer) Unwrap() http.ResponseWriter { return w.ResponseWriter }

func (w *Writer) begin() {
	w.mu.Lock()
	w.writing = true
	w.mu.Unlock()
	if w.timer == nil {
		w.timer = time.AfterFunc(w.timeout, w.cut)
	} else {
		w.timer.Reset(w.timeout)
	}
}

func (w *Writer) end() {
	w.timer.Stop()
	w.mu.Lock()
	w.writing = false
	w.mu.Unlock()
}

// cut makes the write that is under way fail.
func (w *Writer) cut() {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.writing {
		w.Break()
	}
}

// Break makes the write that is under way and all later ones fail, and ends the connection; on HTTP/2, the stream. It may be called
// at any time before the handler returns.
func (w *Writer) Break() { _ = w.control.SetWriteDeadline(time.Unix(1, 0)) } // writers of tests have none
