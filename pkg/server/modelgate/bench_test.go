// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package modelgate

import (
	"fmt"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/types"
	clocktesting "k8s.io/utils/clock/testing"

	"github.com/platform-ai/platform/pkg/fairshare"
)

// BenchmarkGate is the time that the gate adds to a request and its end: with a full window, and with tasks that wait.
func BenchmarkGate(b *testing.B) {
	for _, size := range []int64{60, 1000, 10000} {
		b.Run(fmt.Sprint(size, " a minute"), func(b *testing.B) {
			c := clocktesting.NewFakePassiveClock(time.Unix(1_000_000, 0))
			g := New(c, fairshare.Shares{})
			limit := Limit{Of: "Provider ns/p", Requests: size, Tokens: 1 << 40}
			used := int64(7)
			for i := 0; b.Loop(); i++ {
				task := fmt.Sprint(i % 100)
				if _, err := g.Begin(b.Context(), Request{Task: types.UID(task), Call: "1/1", MaxTokens: 10, Limits: []Limit{limit}}); err != nil {
					c.SetTime(c.Now().Add(period))
					continue
				}
				g.End(Ended{Call: Call{types.UID(task), "1/1"}, Used: &used})
			}
		})
	}
}
