// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package object

import (
	"sync"
	"sync/atomic"
	"time"
)

const (
	wakeInline = 8                    // up to so many waiting watches are woken by the writer itself
	wakePause  = 3 * time.Microsecond // for each watch woken, how long a round of wake-ups waits for more changes
	wakeLonger = 10 * time.Millisecond
)

// wakeups tells watches that something changed.
type wakeups struct {
	db *DB

	mu     sync.Mutex
	notify chan struct{} // closed by the next wake-up; nil while nobody has asked for it

	waiting  atomic.Int32
	waking   atomic.Bool   // rounds of wake-ups are going on
	unseen   atomic.Bool   // something changed since the last round
	progress atomic.Uint64 // counts requests for progress
}

// changed returns a channel that the next wake-up closes. A watch takes it before
// it looks for events, so that it misses none.
func (n *wakeups) changed() <-chan struct{} {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.notify == nil {
		n.notify = make(chan struct{})
	}
	return n.notify
}

// wake makes waiting watches look. Many are woken from another goroutine, in
// rounds: one round serves every change made meanwhile, since waking a thousand
// goroutines costs more than what they then do.
func (n *wakeups) wake() {
	if n.waiting.Load() <= wakeInline {
		n.now()
		return
	}
	n.unseen.Store(true)
	if n.waking.CompareAndSwap(false, true) {
		go n.rounds() // ends by itself as soon as nothing is unseen
	}
}

func (n *wakeups) rounds() {
	for {
		for n.unseen.Swap(false) {
			waiting := n.waiting.Load()
			n.now()
			n.db.opts.Clock.Sleep(min(time.Duration(waiting)*wakePause, wakeLonger))
		}
		n.waking.Store(false)
		if !n.unseen.Load() || !n.waking.CompareAndSwap(false, true) {
			return
		}
	}
}

func (n *wakeups) now() {
	n.mu.Lock()
	ch := n.notify
	n.notify = nil
	n.mu.Unlock()
	if ch != nil {
		close(ch)
	}
}
