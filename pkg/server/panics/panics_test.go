// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package panics

import (
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	"k8s.io/utils/clock"

	"github.com/platform-ai/platform/pkg/sparse"
)

// TestAnswer: a panic is counted once and answered with 500, or breaks an answer that has begun. What breaks off on purpose, and
// what does not panic, is not counted.
func TestAnswer(t *testing.T) {
	for name, tc := range map[string]struct {
		handler http.HandlerFunc
		code    int // 0 for a broken connection
		counted float64
	}{
		"good":              {func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "good") }, 200, 0},
		"panic":             {func(http.ResponseWriter, *http.Request) { panic("x") }, 500, 1},
		"in the answer":     {func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "half"); panic("x") }, 0, 1},
		"after the flush":   {func(w http.ResponseWriter, _ *http.Request) { w.(http.Flusher).Flush(); panic("x") }, 0, 1},
		"after the header":  {func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusCreated); panic("x") }, 0, 1},
		"early hints":       {func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusEarlyHints); panic("x") }, 500, 1},
		"broken on purpose": {func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) }, 0, 0},
	} {
		t.Run(name, func(t *testing.T) {
			c, err := New(sparse.New(clock.RealClock{}), prometheus.NewRegistry())
			if err != nil {
				t.Fatal(err)
			}
			before := Total()
			s := httptest.NewServer(c.Guard(c.Answer(tc.handler, func(w http.ResponseWriter, _ *http.Request) {
				http.Error(w, ErrPanic.Error(), http.StatusInternalServerError)
			})))
			defer s.Close()
			code := 0
			req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, s.URL, http.NoBody)
			if err != nil {
				t.Fatal(err)
			}
			if r, err := s.Client().Do(req); err == nil {
				if _, err := io.ReadAll(r.Body); err == nil {
					code = r.StatusCode
				}
				if err := r.Body.Close(); err != nil {
					t.Error(err)
				}
			}
			if n := testutil.ToFloat64(c.count); code != tc.code || n != tc.counted || Total()-before != int64(tc.counted) {
				t.Errorf("answered %d, counted %v", code, n)
			}
		})
	}
}

// TestGuard: a panic that nobody answered breaks the connection and is counted.
func TestGuard(t *testing.T) {
	c, err := New(sparse.New(clock.RealClock{}), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err, ok := recover().(error); !ok || !errors.Is(err, http.ErrAbortHandler) || testutil.ToFloat64(c.count) != 1 {
			t.Errorf("%v, counted %v", err, testutil.ToFloat64(c.count))
		}
	}()
	c.Guard(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { panic("x") })).ServeHTTP(httptest.NewRecorder(), httptest.NewRequest(http.MethodGet, "/", http.NoBody))
}
