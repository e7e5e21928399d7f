// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package wire

import (
	"context"
	"time"

	"k8s.io/utils/clock"
)

// StallError is the cause of the end of a stream on which too little arrived.
type StallError struct{ text string }

// Error says what was waited for, and how long.
func (e *StallError) Error() string { return e.text }

// Watch ends a stream on which nothing arrives, or nothing but events without content, such as pings.
type Watch struct {
	idle, silent       clock.Timer
	idleFor, silentFor time.Duration
	size               int
}

// NewWatch starts to watch a stream. It calls cancel with a *StallError if nothing arrives for idle, or no content for
// silent.
func NewWatch(c clock.WithDelayedExecution, idle, silent time.Duration, cancel context.CancelCauseFunc) *Watch {
	return &Watch{
		idleFor: idle, silentFor: silent,
		idle:   c.AfterFunc(idle, func() { cancel(&StallError{"the stream brought nothing for " + idle.String()}) }),
		silent: c.AfterFunc(silent, func() { cancel(&StallError{"the stream brought events without content for " + silent.String()}) }),
	}
}

// Event notes that an event arrived. size is how much content the answer has so far.
func (w *Watch) Event(size int) {
	w.idle.Reset(w.idleFor)
	if size > w.size {
		w.size = size
		w.silent.Reset(w.silentFor)
	}
}

// Stop ends the watch.
func (w *Watch) Stop() {
	w.idle.Stop()
	w.silent.Stop()
}
