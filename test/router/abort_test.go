// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package router

import (
	"flag"
	"io"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"

	"github.com/platform-ai/platform/test/kit"
)

var aborts = flag.Int("aborts", 100, "streams that clients abort in TestAborted")

// Streams that their clients abort leave neither goroutines nor memory behind.
func TestAborted(t *testing.T) {
	h := issuing(t)
	in := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		w.Header().Set("Content-Type", "text/event-stream")
		for r.Context().Err() == nil {
			_, _ = io.WriteString(w, "data: Hello.\n\n")
			_ = http.NewResponseController(w).Flush()
		}
	}))
	t.Cleanup(in.Close)
	s := start(t, h, map[string]string{"team-a": in.URL})
	token := h.token(t, "team-a", "client")
	transport := &http.Transport{}
	abort := func(n int) {
		var all sync.WaitGroup
		for range 10 {
			all.Go(func() {
				for range n / 10 {
					resp, err := transport.RoundTrip(s.plainRequest(t, "/openai/v1/chat/completions", `{"stream":true}`, token))
					if err != nil {
						t.Error(err)
						return
					}
					_, _ = io.ReadFull(resp.Body, make([]byte, 16))
					_ = resp.Body.Close() // breaks the connection
				}
			})
		}
		all.Wait()
	}
	kit.Leak{
		Do: abort, Settle: transport.CloseIdleConnections,
		Kept: func() uint64 { return 3 * uint64(len(s.logs())) }, // in a buffer of the test that doubles
	}.Check(t, *aborts)
}
