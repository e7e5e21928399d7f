// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package router

import (
	"flag"
	"io"
	"net/http"
	"net/http/httptest"
	"runtime"
	"sync"
	"testing"
	"time"
)

var aborts = flag.Int("aborts", 300, "streams that clients abort in TestAborted")

// Streams that their clients abort leave neither goroutines nor memory behind.
func TestAborted(t *testing.T) {
	h := standalone(t)
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
	// settled returns the goroutines and the bytes in use when no answer is passed on any more.
	settled := func(most int) (int, uint64) {
		transport.CloseIdleConnections()
		for end := time.Now().Add(20 * time.Second); runtime.NumGoroutine() > most && time.Now().Before(end); {
			time.Sleep(50 * time.Millisecond) // goroutines of connections end without an event that could be awaited
		}
		runtime.GC()
		runtime.GC()
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		return runtime.NumGoroutine(), m.HeapAlloc
	}
	abort(100) // fills pools and caches
	goroutines, bytes := settled(0x7fffffff)
	abort(*aborts)
	nowGoroutines, nowBytes := settled(goroutines + 20)
	t.Logf("%d aborted streams: goroutines %d before, %d after; heap %d KiB before, %d KiB after", *aborts, goroutines, nowGoroutines, bytes>>10, nowBytes>>10)
	if nowGoroutines > goroutines+20 {
		t.Errorf("%d goroutines became %d", goroutines, nowGoroutines)
	}
	if logs := uint64(len(s.logs())); nowBytes > bytes+(8<<20)+3*logs { // the test keeps them, in a buffer that doubles
		t.Errorf("%d bytes of heap became %d", bytes, nowBytes)
	}
}
