// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package server

import (
	"runtime/metrics"
	"testing"
	"testing/synctest"

	"k8s.io/utils/clock"
)

func TestQuiet(t *testing.T) {
	const live = 160
	var q quiet
	dropped := uint64(0)
	for i, c := range []struct {
		allocated, dropped uint64 // since the check before
		want               bool
	}{
		{100, 0, false}, // the start
		{5, 0, true},    // quiet after it
		{5, 0, false},   // nothing to give back
		{200, 0, false}, // a load
		{200, 0, false},
		{11, 0, false}, // not quiet yet
		{10, 0, true},
		{10, 0, false},
		{10, 0, false},
		{10, 0, true}, // what is allocated slowly is given back, too
		{1, 15, false},
		{1, 15, true}, // and so is what was dropped
		{1, 0, false},
	} {
		dropped += c.dropped
		if got := q.due(q.last+c.allocated, dropped, live); got != c.want {
			t.Errorf("check %d: %t, want %t", i, got, c.want)
		}
	}
}

var kept []byte

// The pages of a heap that is not used any more are the operating system's again after two periods.
func TestGiveBackMemory(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const load = 256 << 20
		GiveBackMemory(t.Context(), clock.RealClock{}, func() uint64 { return 0 })
		kept = make([]byte, load)
		for i := 0; i < len(kept); i += 4096 {
			kept[i] = 1
		}
		before := held()
		kept = nil
		clock.RealClock{}.Sleep(2*quietPeriod + 1)
		synctest.Wait()
		if after := held(); after > before-load/2 {
			t.Errorf("the heap holds %d bytes, and %d before", after, before)
		}
	})
}

// held returns the bytes of the heap that are used, or neither used nor given back.
func held() uint64 {
	s := []metrics.Sample{{Name: "/memory/classes/heap/free:bytes"}, {Name: "/memory/classes/heap/objects:bytes"}}
	metrics.Read(s)
	return s[0].Value.Uint64() + s[1].Value.Uint64()
}
