// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package kit

import (
	"runtime"
	"testing"
	"time"
)

const (
	// rehearsals fill pools and caches.
	rehearsals = 100
	// spareGoroutines may be left, such as those of connections that are kept.
	spareGoroutines = 20
	// spareHeap is by how much the heap may have grown, in bytes.
	spareHeap = 4 << 20
	// settling is how long goroutines have to end.
	settling = 20 * time.Second
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
	goroutines, heap := l.settled(0)
	l.Do(n)
	nowGoroutines, nowHeap := l.settled(goroutines + spareGoroutines)
	t.Logf("after %d times: goroutines %d before, %d after; heap %d KiB before, %d KiB after", n, goroutines, nowGoroutines, heap>>10, nowHeap>>10)
	if nowGoroutines > goroutines+spareGoroutines {
		t.Errorf("%d goroutines became %d", goroutines, nowGoroutines)
	}
	if l.Kept != nil {
		heap += l.Kept()
	}
	if nowHeap > heap+spareHeap {
		t.Errorf("%d bytes of the heap are in use, more than %d", nowHeap, heap+spareHeap)
	}
}

// settled returns the goroutines and the bytes in use, once there are at most that many goroutines; 0 for any number.
func (l Leak) settled(most int) (goroutines int, heap uint64) {
	if l.Settle != nil {
		l.Settle()
	}
	for end := time.Now().Add(settling); most > 0 && runtime.NumGoroutine() > most && time.Now().Before(end); {
		time.Sleep(50 * time.Millisecond) // goroutines of connections end without an event that could be awaited
	}
	runtime.GC()
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return runtime.NumGoroutine(), m.HeapAlloc
}
