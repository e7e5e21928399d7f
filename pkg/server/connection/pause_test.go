// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package connection

import (
	"testing"
	"time"
)

func TestPauseAfter(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		failures    int
		asked, want time.Duration
	}{
		{1, 0, 5 * time.Second},
		{2, 0, 10 * time.Second},
		{6, 0, 160 * time.Second},
		{7, 0, 5 * time.Minute},
		{8, 0, 5 * time.Minute},
		{1 << 40, 0, 5 * time.Minute},
		{1, time.Second, 5 * time.Second},
		{1, time.Minute, time.Minute},
		{7, 6 * time.Minute, 6 * time.Minute},
		{1, 24 * time.Hour, 15 * time.Minute},
	} {
		if got := pauseAfter(tc.failures, tc.asked); got != tc.want {
			t.Errorf("after %d failures, asked for %s: %s, want %s", tc.failures, tc.asked, got, tc.want)
		}
	}
}
