// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package compat

import (
	"context"
	"flag"
	"io"
	"net/http"
	"strings"
	"sync"
	"testing"

	"github.com/platform-ai/platform/pkg/apis/core/v1alpha1"
	"github.com/platform-ai/platform/test/harness"
)

var aborts = flag.Int("aborts", 300, "streams that clients abort in TestAborted")

// memtable is how large the store's newest part becomes in memory, in bytes, before it is written to a file: the records of the
// streams fill it.
const memtable = 32 << 20

// Streams that their clients abort leave neither goroutines nor memory behind.
func TestAborted(t *testing.T) {
	s := start(t)
	s.namespace("team")
	v := newVendor(t, nil)
	v.Config.Handler = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { // keeps no requests
		_, _ = io.Copy(io.Discard, r.Body)
		w.Header().Set("Content-Type", eventKind)
		for range 20 {
			_, _ = io.WriteString(w, `data: {"choices":[{"index":0,"delta":{"content":"Hello. "}}],"usage":null}`+"\n\n")
			_ = http.NewResponseController(w).Flush()
		}
	})
	s.provider("team", "default", v1alpha1.ProviderOpenAI, v.URL, "m")
	token := s.token("team", "client", "chat")
	transport := &http.Transport{}
	abort := func(n int) {
		var wg sync.WaitGroup
		for range 10 {
			wg.Go(func() {
				for range n / 10 {
					ctx, leave := context.WithCancel(t.Context())
					req, err := http.NewRequestWithContext(ctx, http.MethodPost, s.RESTURL+"/openai/v1/chat/completions", strings.NewReader(`{"stream":true,"messages":[1]}`))
					if err != nil {
						t.Error(err)
					}
					req.Header.Set("Authorization", "Bearer "+token)
					req.Header.Set("X-Platform-Tools", "disabled")
					resp, err := transport.RoundTrip(req)
					if err == nil {
						_, _ = io.ReadFull(resp.Body, make([]byte, 16)) // the first event has begun
						leave()
						_ = resp.Body.Close()
					}
					leave()
				}
			})
		}
		wg.Wait()
	}
	harness.Leak{Do: abort, Settle: transport.CloseIdleConnections, Kept: func() uint64 { return memtable }}.Check(t, *aborts)
}
