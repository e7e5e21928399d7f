// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package server

import (
	"os"
	"runtime"
	"runtime/debug"
	"testing"

	"github.com/platform-ai/platform/test/kit"
)

func TestGrowth(t *testing.T) {
	for live, want := range map[uint64]int{0: 6400, 1 << 20: 6400, 16 << 20: 400, 64 << 20: 100, 1 << 30: 100} {
		if got := growth(live); got != want {
			t.Errorf("%d MiB in use: %d %%, want %d", live>>20, got, want)
		}
	}
}

// The pace follows what the collector finds in use: more when that is little, and as usual when it is much.
func TestSpaceCollections(t *testing.T) {
	if _, set := os.LookupEnv("GOGC"); set {
		t.Skip("GOGC takes precedence")
	}
	percent := func() int {
		now := debug.SetGCPercent(100)
		debug.SetGCPercent(now)
		return now
	}
	SpaceCollections()
	await := func(what string, reached func(int) bool) {
		t.Helper()
		kit.Await(t, "the pace of "+what, func() bool {
			runtime.GC()
			return reached(percent())
		})
	}
	await("a small heap", func(p int) bool { return p > 200 })
	much := make([]byte, 2*minGarbage)
	await("a large heap", func(p int) bool { return p == 100 })
	runtime.KeepAlive(much)
}
