// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package statuscode_test

import (
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/platform-ai/platform/pkg/server/statuscode"
)

// TestCode: the code is that of the answer, however it begins, and not that of an informational answer before it.
func TestCode(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		do   func(*statuscode.Writer)
		want int
	}{
		"nothing":      {func(*statuscode.Writer) {}, 0},
		"a hint":       {func(w *statuscode.Writer) { w.WriteHeader(http.StatusEarlyHints) }, 0},
		"a hint first": {func(w *statuscode.Writer) { w.WriteHeader(http.StatusEarlyHints); w.WriteHeader(http.StatusNotFound) }, http.StatusNotFound},
		"a second one": {func(w *statuscode.Writer) { w.WriteHeader(http.StatusNotFound); w.WriteHeader(http.StatusOK) }, http.StatusNotFound},
		"a body":       {func(w *statuscode.Writer) { _, _ = io.WriteString(w, "x") }, http.StatusOK},
		"a flush":      {func(w *statuscode.Writer) { w.Flush() }, http.StatusOK},
	} {
		w := statuscode.NewWriter(httptest.NewRecorder())
		tc.do(w)
		if got := w.Code(); got != tc.want {
			t.Errorf("%s: %d, want %d", name, got, tc.want)
		}
	}
}

// broken is a connection that cannot be flushed.
type broken struct{ http.ResponseWriter }

var errBroken = errors.New("the connection is broken")

func (broken) FlushError() error { return errBroken }

// silent is a writer of a handler chain that flushes without reporting a failure.
type silent struct{ http.ResponseWriter }

func (s silent) Flush()                      { _ = http.NewResponseController(s.ResponseWriter).Flush() }
func (s silent) Unwrap() http.ResponseWriter { return s.ResponseWriter }

// TestFlushReportsFailures: a failure is found below writers that do not report it.
func TestFlushReportsFailures(t *testing.T) {
	t.Parallel()
	w := statuscode.NewWriter(silent{broken{httptest.NewRecorder()}})
	if err := http.NewResponseController(silent{w}).Flush(); err != nil {
		t.Errorf("a silent writer reports %v", err)
	}
	if err := w.FlushError(); !errors.Is(err, errBroken) {
		t.Errorf("got %v", err)
	}
}
