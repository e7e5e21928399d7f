// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package server

import (
	"context"
	"runtime/debug"
	"runtime/metrics"
	"time"

	"k8s.io/klog/v2"
	"k8s.io/utils/clock"
)

const (
	// quietPeriod is how often it is checked whether the process is quiet.
	quietPeriod = 10 * time.Second
	// quietShare and wasteShare are parts of the memory that the last collection found in use. A process is quiet if it allocated
	// less than the first in a period. Memory is given back once more than the second was allocated or dropped since it was last
	// given back, which takes two periods at least if nothing is dropped, so a collection for it costs little.
	quietShare, wasteShare = 16, 8
)

// GiveBackMemory returns memory that the process does not use to the operating system whenever the process becomes quiet, until
// ctx ends. By itself, the garbage collector lets a process that stopped allocating keep twice the memory that it uses. dropped
// returns how many bytes of caches were ever dropped: without allocations nothing else would show that they are free.
func GiveBackMemory(ctx context.Context, c clock.WithTicker, dropped func() uint64) {
	tick := c.NewTicker(quietPeriod)
	go func() { // ends with ctx
		defer tick.Stop()
		var q quiet
		for {
			select {
			case <-ctx.Done():
				return
			case <-tick.C():
			}
			if allocated, live := allocations(); q.due(allocated, dropped(), live) {
				debug.FreeOSMemory()
				klog.FromContext(ctx).V(2).Info("Gave unused memory back, because the server is quiet", "inUseBefore", live)
			}
		}
	}()
}

// quiet decides when memory is given back.
type quiet struct {
	last  uint64 // what had been allocated at the last check
	given uint64 // what had been allocated and dropped when memory was last given back
}

// due is called at each check with all bytes that were ever allocated, those that were ever dropped, and those that the last
// collection found in use.
func (q *quiet) due(allocated, dropped, live uint64) bool {
	busy := allocated-q.last > live/quietShare
	q.last = allocated
	if busy || allocated+dropped-q.given <= live/wasteShare {
		return false
	}
	q.given = allocated + dropped
	return true
}

// allocations returns the bytes of the heap that were ever allocated, and those that the last collection found in use.
func allocations() (allocated, live uint64) {
	s := []metrics.Sample{{Name: "/gc/heap/allocs:bytes"}, {Name: "/gc/heap/live:bytes"}}
	metrics.Read(s)
	return s[0].Value.Uint64(), s[1].Value.Uint64()
}
