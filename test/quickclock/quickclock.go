// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

// Package quickclock provides a clock for tests of code that pauses: no pause
// takes time, and the test sees how long each would have been.
package quickclock

import (
	"sync"
	"time"

	"k8s.io/utils/clock"
	clocktesting "k8s.io/utils/clock/testing"
)

// Clock fires every timer at once, advances by the timer's duration, and records it.
type Clock struct {
	*clocktesting.FakeClock
	mu    sync.Mutex
	waits []time.Duration
}

// New returns a clock that stands at a fixed time.
func New() *Clock {
	return &Clock{FakeClock: clocktesting.NewFakeClock(time.Unix(1000, 0))}
}

// NewTimer returns a timer that has fired.
func (c *Clock) NewTimer(d time.Duration) clock.Timer {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.waits = append(c.waits, d)
	t := c.FakeClock.NewTimer(d)
	c.Step(d)
	return t
}

// Waits returns the pauses so far, in order; nil for none.
func (c *Clock) Waits() []time.Duration {
	c.mu.Lock()
	defer c.mu.Unlock()
	return append([]time.Duration(nil), c.waits...)
}
