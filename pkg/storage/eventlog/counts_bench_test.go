// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package eventlog

import (
	"context"
	"fmt"
	"syscall"
	"testing"
	"time"
)

// processorTime is what the process has used.
func processorTime(b *testing.B) time.Duration {
	var r syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &r); err != nil {
		b.Fatal(err)
	}
	return time.Duration(r.Utime.Nano() + r.Stime.Nano())
}

// BenchmarkLongStream reads a stream of a million events as a console does.
func BenchmarkLongStream(b *testing.B) {
	c := newCounted(b)
	c.fill(1_000_000, 1000, time.Second)
	ctx := context.Background()
	for _, buckets := range []int{0, 200, 500} {
		b.Run(fmt.Sprintf("count in %d buckets", buckets), func(b *testing.B) {
			b.ReportAllocs()
			before := processorTime(b)
			defer func() {
				b.ReportMetric(float64((processorTime(b)-before).Microseconds())/1000/float64(b.N), "cpu-ms/op")
			}()
			for b.Loop() {
				if _, err := c.Count(ctx, c.s, nil, buckets); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
	for name, span := range map[string]Span{
		"last page": {Backward: true}, "before the middle": {Backward: true, Before: 500_000}, "search without a match": {Backward: true, Text: "absent"},
	} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if _, err := c.TaskSpan(ctx, c.s, span); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
	b.Run("first count of an older version's stream", func(b *testing.B) {
		for b.Loop() {
			b.StopTimer()
			c.forget()
			b.StartTimer()
			if _, err := c.Count(ctx, c.s, nil, 200); err != nil {
				b.Fatal(err)
			}
		}
	})
}
