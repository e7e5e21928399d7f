// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package ledger_test

import (
	"fmt"
	"testing"

	"github.com/platform-ai/platform/pkg/usage"
)

// BenchmarkView reads and adds up the most records that a report may select: 20,000 observations of 2,000 tasks.
func BenchmarkView(b *testing.B) {
	s := open(b)
	for i := range 2000 {
		lines := []string{worker(1)}
		for n := range 10 {
			lines = append(lines, begin(n), end(n, 100, 10))
		}
		s.append(fmt.Sprint("t", i), append(lines, "TaskSucceeded")...)
	}
	b.ReportAllocs()
	for b.Loop() {
		n, sum := 0, usage.Totals{}
		for o, err := range s.view(s.clock.Now()).Observations(usage.Period{}) {
			if n++; err != nil || sum.Add(o) != nil {
				b.Fatal(err)
			}
		}
		if n != 20000 {
			b.Fatal(n)
		}
	}
}
