// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package chat

import (
	"context"
	"slices"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"

	"github.com/platform-ai/platform/pkg/fairshare"
)

// slots bounds how many turns run at once. They go round the namespaces (see fairshare): one that was refused is told to come
// back, and until then a slot that becomes free is not given to a namespace that holds more.
type slots struct {
	total int
	clock clock.PassiveClock

	mu   sync.Mutex // guards what follows
	used *fairshare.Ledger
	// wanted says until when a slot is kept for a namespace that was refused.
	wanted map[string]time.Time
	queue  []*queued // turns that wait, in the order in which they asked
}

// queued is a turn that waits for a slot. Ready is closed when it has one.
type queued struct {
	namespace string
	ready     chan struct{}
}

// keptFor is how long a slot is kept for a namespace that was refused: clients come back after busySeconds.
const keptFor = 3 * busySeconds * time.Second

func newSlots(n int, s fairshare.Shares, c clock.PassiveClock) *slots {
	return &slots{total: n, clock: c, used: fairshare.NewLedger(s), wanted: map[string]time.Time{}}
}

// take takes a slot for a namespace, or reports false if none is free for it.
func (s *slots) take(namespace string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	now, free := s.clock.Now(), s.total-s.used.Sum()
	for other, until := range s.wanted {
		switch {
		case until.Before(now):
			delete(s.wanted, other)
		case other != namespace && s.used.Compare(other, namespace) < 0:
			free--
		}
	}
	if !s.used.MayTake(namespace, free) {
		return false
	}
	s.hold(namespace)
	return true
}

// want notes that a namespace was refused. Its caller must be allowed to chat there, or anybody could have slots kept.
func (s *slots) want(namespace string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.wanted[namespace] = s.clock.Now().Add(keptFor)
}

// wait takes a slot as soon as it is the namespace's turn. It reports false if ctx ends first.
func (s *slots) wait(ctx context.Context, namespace string) bool {
	q := &queued{namespace, make(chan struct{})}
	s.mu.Lock()
	s.queue = append(s.queue, q)
	s.serve()
	s.mu.Unlock()
	select {
	case <-q.ready:
		return true
	case <-ctx.Done():
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if i := slices.Index(s.queue, q); i >= 0 {
		s.queue = slices.Delete(s.queue, i, i+1)
	} else { // it was served at the same time
		s.used.Release(namespace)
		s.serve()
	}
	return false
}

// give gives a slot back.
func (s *slots) give(namespace string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.used.Release(namespace)
	s.serve()
}

// serve gives free slots to turns that wait. The caller holds mu.
func (s *slots) serve() {
	for {
		var next *queued
		for _, q := range s.queue {
			if s.used.MayTake(q.namespace, s.total-s.used.Sum()) && (next == nil || s.used.Compare(q.namespace, next.namespace) < 0) {
				next = q
			}
		}
		if next == nil {
			return
		}
		s.queue = slices.DeleteFunc(s.queue, func(q *queued) bool { return q == next })
		s.hold(next.namespace)
		close(next.ready)
	}
}

func (s *slots) hold(namespace string) {
	delete(s.wanted, namespace)
	s.used.Served(namespace)
	s.used.Hold(namespace)
}

// sessions knows which sessions have a turn. The server writes one process, so a lock in memory suffices.
type sessions struct {
	mu    sync.Mutex
	turns map[types.UID]*holder
}

// holder is the turn of a session.
type holder struct {
	cancel context.CancelCauseFunc
	done   chan struct{}
	live   *live // nil unless it is a background turn that has begun
}

func newSessions() *sessions { return &sessions{turns: map[types.UID]*holder{}} }

// hold gives a session to a turn, or returns nil if it has one.
func (s *sessions) hold(uid types.UID, cancel context.CancelCauseFunc) (release func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.turns[uid] != nil {
		return nil
	}
	h := &holder{cancel: cancel, done: make(chan struct{})}
	s.turns[uid] = h
	return func() {
		s.mu.Lock()
		delete(s.turns, uid)
		s.mu.Unlock()
		close(h.done)
	}
}

// show makes the frames of a session's turn visible.
func (s *sessions) show(uid types.UID, l *live) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.turns[uid].live = l
}

// live returns the frames of a session's turn; nil if it has none that runs in the background.
func (s *sessions) live(uid types.UID) *live {
	s.mu.Lock()
	defer s.mu.Unlock()
	if h := s.turns[uid]; h != nil {
		return h.live
	}
	return nil
}

// cancel ends the turn of a session and reports whether the session has none any more.
func (s *sessions) cancel(ctx context.Context, uid types.UID) bool {
	s.mu.Lock()
	h := s.turns[uid]
	s.mu.Unlock()
	if h == nil {
		return true
	}
	h.cancel(errCancelled)
	select {
	case <-h.done:
		return true
	case <-ctx.Done():
		return false
	}
}
