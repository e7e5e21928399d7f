// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package compat

import (
	"context"
	"flag"
	"io"
	"net/http"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/platform-ai/platform/test/kit"
)

var aborts = flag.Int("aborts", 100, "requests that clients abort in TestAborted")

// Requests that their clients abort leave neither goroutines nor memory behind, whatever the endpoint and wherever they are: before
// the vendor answers, or once the answer has begun. The server, the router, the vendor and the clients are all in this process.
func TestAborted(t *testing.T) {
	s := start(t)
	var leaving early
	v := mixedVendor(t, func(number int) (fate, int64) {
		leaving.asked(number)
		return complete, 1
	})
	kinds, token := onMix(t, s, v)
	transport := &http.Transport{}
	var number, begun, before atomic.Int64
	abort := func(n int) {
		var wg sync.WaitGroup
		for range 10 {
			wg.Go(func() {
				for range n / 10 {
					i := int(number.Add(1))
					ctx, leave := context.WithCancel(t.Context())
					if i%3 == 0 {
						leaving.on(i, leave)
					}
					resp, err := transport.RoundTrip(kinds[i%len(kinds)].request(ctx, i, token))
					if err == nil {
						_, _ = io.ReadFull(resp.Body, make([]byte, 16)) // the answer has begun
						begun.Add(1)
						leave()
						_ = resp.Body.Close()
					} else if before.Add(1); ctx.Err() == nil {
						t.Errorf("%s: %v", kinds[i%len(kinds)].name, err)
					}
					leave()
				}
			})
		}
		wg.Wait()
	}
	beganWith := storeMemory()
	grown := func() uint64 { return max(storeMemory(), beganWith) - beganWith }
	// The store keeps what it recorded of the requests in memory, within its own limits: four memtables and a cache.
	kit.Leak{Do: abort, Settle: transport.CloseIdleConnections, Kept: grown}.Check(t, *aborts)
	t.Logf("%d clients left before the answer, %d after its beginning; the store has %d KiB more in memory", before.Load(), begun.Load(), grown()>>10)
}

// storeMemory returns how much of the heap Pebble has for memtables and cached blocks, in bytes. Profiles of the heap are samples,
// but the large blocks of Pebble are always in them.
func storeMemory() (bytes uint64) {
	runtime.GC()
	runtime.GC()
	n, _ := runtime.MemProfile(nil, false)
	records := make([]runtime.MemProfileRecord, n+100)
	n, _ = runtime.MemProfile(records, false)
	for _, r := range records[:n] {
		for frames := runtime.CallersFrames(r.Stack()); ; {
			frame, more := frames.Next()
			if strings.Contains(frame.Function, "pebble/v2/internal/manual.") {
				bytes += uint64(r.InUseBytes())
				break
			}
			if !more {
				break
			}
		}
	}
	return bytes
}
