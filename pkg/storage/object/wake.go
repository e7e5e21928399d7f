// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package object

import (
	"sync"
	"sync/atomic"
	"time"

	"k8s.io/utils/clock"
)

const (
	wakeInline = 8                    // up to this many waiting watches are woken by the writer itself
	wakePause  = 3 * time.Microsecond // for each watch woken, how long a round of wake-ups waits for more changes
	wakeLonger = 10 * time.Millisecond
)

// scopes wakes the watches that a change may concern: those of the whole topic, and the narrow ones of its
// key or of a prefix of its key. With thousands of watches of one object each, a write costs one look-up
// instead of thousands of wake-ups.
type scopes struct {
	whole    wakeups
	progress atomic.Uint64 // counts requests for progress

	mu     sync.RWMutex
	narrow map[string]*scope // by the watch's key; with a trailing slash for a prefix
	// pending and pendingBytes measure what was published since all narrow watches last read the ring. They
	// must read it before those events leave the ring. Otherwise they would search the changelog for
	// changes that do not concern them. Only publication uses these fields.
	pending      int
	pendingBytes int64
}

type scope struct {
	wakeups
	watches int // guarded by scopes.mu
}

// join returns the wakeups for watches of key. It must be paired with leave.
func (s *scopes) join(key, topicPrefix string) *wakeups {
	if key == topicPrefix {
		return &s.whole
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	sc := s.narrow[key]
	if sc == nil {
		sc = &scope{}
		s.narrow[key] = sc
	}
	sc.watches++
	return &sc.wakeups
}

func (s *scopes) leave(key, topicPrefix string) {
	if key == topicPrefix {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if sc := s.narrow[key]; sc != nil {
		if sc.watches--; sc.watches == 0 {
			delete(s.narrow, key)
		}
	}
}

// wake wakes the watches that a change of key may concern.
func (s *scopes) wake(key string, topicPrefix string, ev int64, r *ring) {
	s.whole.wake()
	s.pending++
	s.pendingBytes += ev
	s.mu.RLock()
	defer s.mu.RUnlock()
	if len(s.narrow) == 0 {
		return
	}
	if s.pending > r.maxEvents/4 || s.pendingBytes > r.maxBytes/4 {
		s.pending, s.pendingBytes = 0, 0
		s.wakeAll()
		return
	}
	if sc := s.narrow[key]; sc != nil {
		sc.wake()
	}
	for i := len(topicPrefix); i < len(key); i++ {
		if key[i] == '/' {
			if sc := s.narrow[key[:i+1]]; sc != nil {
				sc.wake()
			}
		}
	}
}

// wakeNarrow makes all narrow watches read the ring.
func (s *scopes) wakeNarrow() {
	s.mu.RLock()
	defer s.mu.RUnlock()
	s.wakeAll()
}

func (s *scopes) wakeAll() {
	for _, sc := range s.narrow {
		sc.wake()
	}
}

// wakeups notifies watches that something changed.
type wakeups struct {
	mu     sync.Mutex
	notify chan struct{} // closed by the next wake-up; nil while no watch waits

	waiting atomic.Int32
	waking  atomic.Bool // rounds of wake-ups are running
	unseen  atomic.Bool // something changed since the last round
}

// changed returns a channel that the next wake-up closes. A watch must call it before it looks for events,
// so that it misses none.
func (n *wakeups) changed() <-chan struct{} {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.notify == nil {
		n.notify = make(chan struct{})
	}
	return n.notify
}

// wake makes waiting watches look for events. If there are many, another goroutine wakes them in rounds.
// One round serves every change made meanwhile, because waking a thousand goroutines costs more than the
// work that they then do.
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
			clock.RealClock{}.Sleep(min(time.Duration(waiting)*wakePause, wakeLonger)) // saves CPU time; not a timeout that a caller chose, so no injected clock
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
