// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package trace

import (
	"time"

	"github.com/platform-ai/platform/pkg/apis/core/v1alpha1"
)

// mark is when an event happened. The worker's clock, where an event has it, says how long something took; the time of
// receipt would add every outage of the server to it.
type mark struct {
	received time.Time
	attempt  int32
	elapsed  time.Duration // by the clock of the attempt's worker; negative if unknown
}

func markOf(e *v1alpha1.ExecutionEvent) mark {
	m := mark{received: e.CreatedAt.Time, attempt: e.Attempt, elapsed: -1}
	if e.ElapsedMicros != nil {
		m.elapsed = v1alpha1.Length(*e.ElapsedMicros, time.Microsecond)
	}
	return m
}

// until returns the time from m to a later event: by the worker's clock if one worker recorded both, or else by their
// receipts.
func (m mark) until(e *v1alpha1.ExecutionEvent) time.Duration {
	end := markOf(e)
	if m.elapsed < 0 || end.elapsed < m.elapsed || m.attempt != end.attempt {
		return end.received.Sub(m.received)
	}
	return end.elapsed - m.elapsed
}

// clock places events of workers and of others on one axis of time.
type clock struct {
	attempt int32
	// began is when the clock of the attempt's worker began: of all events so far, the earliest that their receipts allow.
	began time.Time
}

// at returns when an event happened.
func (c *clock) at(e *v1alpha1.ExecutionEvent) time.Time {
	m := markOf(e)
	if m.elapsed < 0 {
		return m.received
	}
	if began := m.received.Add(-m.elapsed); c.attempt != m.attempt || began.Before(c.began) {
		c.attempt, c.began = m.attempt, began
	}
	return c.began.Add(m.elapsed)
}
