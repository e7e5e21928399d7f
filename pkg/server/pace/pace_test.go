// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package pace_test

import (
	"io"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/platform-ai/platform/pkg/server/pace"
)

// TestPause: an answer may pause for longer than a part of it may take, on either version of HTTP.
func TestPause(t *testing.T) {
	t.Parallel()
	const timeout = 5 * time.Second // far above what a write takes, also on a busy machine
	for _, two := range []bool{false, true} {
		resume := make(chan struct{})
		s := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			out := pace.NewWriter(w, timeout)
			_, _ = io.WriteString(out, "one")
			if err := out.FlushError(); err != nil {
				t.Error(err)
			}
			<-resume
			if _, err := io.WriteString(out, " two"); err != nil {
				t.Error(err)
			}
			if err := out.FlushError(); err != nil {
				t.Error(err)
			}
		}))
		s.EnableHTTP2 = two
		s.StartTLS()
		resp, err := s.Client().Get(s.URL)
		if err != nil {
			t.Fatal(err)
		}
		time.AfterFunc(2*timeout, func() { close(resume) })
		body, err := io.ReadAll(resp.Body)
		_ = resp.Body.Close()
		if err != nil || string(body) != "one two" || (resp.ProtoMajor == 2) != two {
			t.Errorf("%s: %q, %v", resp.Proto, body, err)
		}
		s.Close()
	}
}

// TestSlow: a write to a client that does not read fails, on either version of HTTP.
func TestSlow(t *testing.T) {
	t.Parallel()
	for _, two := range []bool{false, true} {
		failed := make(chan error, 1)
		s := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			_ = http.NewResponseController(w).Flush() // the client has the header before anything is timed
			out := pace.NewWriter(w, 20*time.Millisecond)
			for {
				if _, err := out.Write(make([]byte, 1<<20)); err != nil {
					failed <- err
					return
				}
			}
		}))
		s.EnableHTTP2 = two
		s.StartTLS()
		resp, err := s.Client().Get(s.URL)
		if err != nil {
			t.Fatal(err)
		}
		if err := <-failed; err == nil {
			t.Error("no write failed")
		}
		_ = resp.Body.Close()
		s.Close()
	}
}
