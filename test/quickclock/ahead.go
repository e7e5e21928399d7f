// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package quickclock

import (
	"sync/atomic"
	"time"

	"k8s.io/utils/clock"
)

// Ahead is the real clock, set forward.
type Ahead struct {
	clock.RealClock

	By atomic.Int64 // a time.Duration
}

// Now is the time.
func (c *Ahead) Now() time.Time { return c.RealClock.Now().Add(time.Duration(c.By.Load())) }

// Since is how long ago a time was.
func (c *Ahead) Since(t time.Time) time.Duration { return c.Now().Sub(t) }
