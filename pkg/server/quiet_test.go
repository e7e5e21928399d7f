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
	for i, c := range []struct {
		allocated uint64 // since the check before
		want      bool
	}{
		{100, false}, // the start
		{5, true},    // quiet after it
		{5, false},   // nothing to give back
		{200, false}, // a load
		{200, false},
		{11, false}, // not quiet yet
		{10, true},
		{10, false},
		{10, false},
		{10, false},
		{10, false},
		{10, false},
		{10, false},
		{10, false},
		{10, false},
		{10, true}, // what is allocated slowly is given back, too
	} {
		if got := q.due(q.last+c.allocated, live); got != c.want {
			t.Errorf("check %d: %t, want %t", i, got, c.want)
		}
	}
}

var kept []byte

// The pages of a heap that is not used any more are the operating system's again after two periods.
func TestGiveBackMemory(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const load = 256 << 20
		GiveBackMemory(t.Context(), clock.RealClock{})
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
