// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package kit

import (
	"fmt"
	"math"
	"runtime"
	"testing"
)

const (
	// rehearsals fill pools and caches.
	rehearsals = 100
	// spareGoroutines may be left, such as those of connections that are kept.
	spareGoroutines = 20
	// spareHeap is by how much the heap may have grown, in bytes.
	spareHeap = 4 << 20
)

// Leak is work of this process that must leave neither goroutines nor memory behind.
type Leak struct {
	// Do does the work n times. It returns when all that it can wait for has ended.
	Do func(n int)
	// Settle, if set, gives up what may be kept, such as idle connections.
	Settle func()
	// Kept, if set, returns how many more bytes of the heap may be in use after the work.
	Kept func() uint64
}

// Check does the work n times and fails the test if it left something.
func (l Leak) Check(t *testing.T, n int) {
	t.Helper()
	l.Do(rehearsals)
	goroutines, heap := l.settled(t, math.MaxInt)
	l.Do(n)
	nowGoroutines, nowHeap := l.settled(t, goroutines+spareGoroutines)
	t.Logf("after %d times: goroutines %d before, %d after; heap %d KiB before, %d KiB after", n, goroutines, nowGoroutines, heap>>10, nowHeap>>10)
	if l.Kept != nil {
		heap += l.Kept()
	}
	if nowHeap > heap+spareHeap {
		t.Errorf("%d bytes of the heap are in use, more than %d", nowHeap, heap+spareHeap)
	}
}

// settled returns the goroutines and the bytes in use, once there are at most that many goroutines: those of connections end without
// an event that could be awaited.
func (l Leak) settled(t *testing.T, most int) (goroutines int, heap uint64) {
	t.Helper()
	if l.Settle != nil {
		l.Settle()
	}
	Await(t, fmt.Sprintf("%d goroutines become %d", runtime.NumGoroutine(), most), func() bool { return runtime.NumGoroutine() <= most })
	runtime.GC()
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return runtime.NumGoroutine(), m.HeapAlloc
}
