// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package task

import (
	"math"
	"time"
)

const (
	// defaultRetryDelay is used as it is when a policy gives no initial delay.
	defaultRetryDelay = 10 * time.Second
	maxRetryDelay     = 5 * time.Minute
	defaultMultiplier = 2.0
)

// retryDelay is the time before the attempt after the given number of failed
// ones. Without an initial delay the series begins at 10 s. It never exceeds 5 min.
func retryDelay(initial time.Duration, multiplier float64, failed int32) time.Duration {
	if initial <= 0 {
		initial = defaultRetryDelay
	}
	if multiplier <= 0 {
		multiplier = defaultMultiplier
	}
	d := float64(initial) * math.Pow(multiplier, float64(max(0, failed-1)))
	if d > float64(maxRetryDelay) { // also covers +Inf
		return maxRetryDelay
	}
	return time.Duration(d)
}
