// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package canonical

import (
	"fmt"
	"strings"
	"testing"
)

// BenchmarkForm has a text of 1 MiB at several depths: the price of its form is that of its length.
func BenchmarkForm(b *testing.B) {
	for _, depth := range []int{1, 1000, 9000} {
		raw := []byte(strings.Repeat(`{"b":1,"a":`, depth) + `"` + strings.Repeat("x", 1<<20) + `"` + strings.Repeat("}", depth))
		b.Run(fmt.Sprint(depth), func(b *testing.B) {
			b.SetBytes(int64(len(raw)))
			for b.Loop() {
				if _, err := Form(raw); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
