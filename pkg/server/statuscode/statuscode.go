// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

// Package statuscode notes the status code of an answer.
package statuscode

import (
	"net/http"

	"github.com/platform-ai/platform/pkg/server/writetimeout"
)

// Writer notes the status code of an answer that it passes on. It has the methods that k8s.io/apiserver asks every writer for.
type Writer struct {
	http.ResponseWriter
	code int
}

// NewWriter returns a Writer for one answer.
func NewWriter(w http.ResponseWriter) *Writer { return &Writer{ResponseWriter: w} }

// Code returns the status code, and 0 until the answer begins.
func (w *Writer) Code() int { return w.code }

// WriteHeader notes the first code that is not informational.
func (w *Writer) WriteHeader(code int) {
	if code >= http.StatusOK {
		w.begin(code)
	}
	w.ResponseWriter.WriteHeader(code)
}

// Write writes a part of the body.
func (w *Writer) Write(p []byte) (int, error) {
	w.begin(http.StatusOK)
	return w.ResponseWriter.Write(p)
}

// FlushError sends what was written, and the header in any case.
func (w *Writer) FlushError() error {
	w.begin(http.StatusOK)
	return writetimeout.Flush(w.ResponseWriter)
}

// Flush is FlushError for callers that ignore errors.
func (w *Writer) Flush() { _ = w.FlushError() }

// CloseNotify is for handlers that ask for it; contexts do the same.
func (w *Writer) CloseNotify() <-chan bool {
	if n, ok := w.ResponseWriter.(http.CloseNotifier); ok { //nolint:staticcheck // k8s.io/apiserver asks every writer for it
		return n.CloseNotify()
	}
	return make(chan bool)
}

// Unwrap is for http.ResponseController.
func (w *Writer) Unwrap() http.ResponseWriter { return w.ResponseWriter }

func (w *Writer) begin(code int) {
	if w.code == 0 {
		w.code = code
	}
}
