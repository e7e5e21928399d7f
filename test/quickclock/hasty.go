// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package quickclock

import (
	"time"

	"k8s.io/utils/clock"
)

// Hasty is the real clock, except that timers and tickers of some durations take as long as Takes says. It is for whole servers, whose
// other timers must work as ever.
type Hasty struct {
	clock.RealClock

	Takes map[time.Duration]time.Duration
}

var _ clock.WithTickerAndDelayedExecution = Hasty{}

func (h Hasty) takes(d time.Duration) time.Duration {
	if other, ok := h.Takes[d]; ok {
		return other
	}
	return d
}

// NewTimer returns a timer, whose Reset also takes another time.
func (h Hasty) NewTimer(d time.Duration) clock.Timer {
	return hastyTimer{h.RealClock.NewTimer(h.takes(d)), h}
}

// NewTicker returns a ticker.
func (h Hasty) NewTicker(d time.Duration) clock.Ticker { return h.RealClock.NewTicker(h.takes(d)) }

// AfterFunc calls f later.
func (h Hasty) AfterFunc(d time.Duration, f func()) clock.Timer {
	return hastyTimer{h.RealClock.AfterFunc(h.takes(d), f), h}
}

// After returns a channel that receives the time later.
func (h Hasty) After(d time.Duration) <-chan time.Time { return h.RealClock.After(h.takes(d)) }

type hastyTimer struct {
	clock.Timer

	clock Hasty
}

func (t hastyTimer) Reset(d time.Duration) bool { return t.Timer.Reset(t.clock.takes(d)) }
