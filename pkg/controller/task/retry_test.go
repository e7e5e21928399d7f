// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package task

import (
	"testing"
	"time"
)

func TestRetryDelay(t *testing.T) {
	for _, tc := range []struct {
		initial    time.Duration
		multiplier float64
		failed     int32
		want       time.Duration
	}{
		{0, 0, 1, 10 * time.Second},
		{0, 0, 2, 20 * time.Second},
		{0, 0, 6, 5 * time.Minute},
		{time.Second, 3, 1, time.Second},
		{time.Second, 3, 3, 9 * time.Second},
		{time.Second, 1, 50, time.Second},
		{time.Second, 0.5, 2, 500 * time.Millisecond},
		{time.Hour, 2, 1, 5 * time.Minute},
		{time.Second, 1e300, 1000, 5 * time.Minute},
	} {
		if got := retryDelay(tc.initial, tc.multiplier, tc.failed); got != tc.want {
			t.Errorf("retryDelay(%s, %v, %d) = %s, want %s", tc.initial, tc.multiplier, tc.failed, got, tc.want)
		}
	}
}
