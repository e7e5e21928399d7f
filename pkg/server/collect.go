// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package server

import (
	"os"
	"runtime"
	"runtime/debug"
	"sync"
)

// minGarbage is how many bytes are allocated between two collections at least.
const minGarbage = 64 << 20

var spacing sync.Once // collections are those of the process, however many servers run in it

// SpaceCollections lets the garbage collector run at most once for each 64 MiB that are allocated. By itself it runs whenever the
// heap has doubled, and the heap of a server with few objects is small, so that under load it would run some ten times a second.
// A larger heap is collected when it has doubled, as always. GOGC takes precedence. The memory limit of the process holds.
func SpaceCollections() {
	if _, set := os.LookupEnv("GOGC"); !set {
		spacing.Do(func() { awaitCollection(100) })
	}
}

// growth returns by how many percent a heap may grow until it is collected, given the bytes that the last collection found in use.
func growth(live uint64) int { return int(max(100, minGarbage*100/max(live, 1<<20))) }

// awaitCollection adapts the pace after the next collection. The runtime does not report collections, but it runs the cleanup of
// an object that nothing uses, and each collection finds one here.
func awaitCollection(percent int) {
	type unused struct{ _ *byte }
	runtime.AddCleanup(&unused{}, func(percent int) {
		_, live := allocations()
		// Each setting stops the process for a moment, so small differences stay.
		if next := growth(live); next*10 > percent*11 || next*10 < percent*9 {
			debug.SetGCPercent(next)
			percent = next
		}
		awaitCollection(percent)
	}, percent)
}
