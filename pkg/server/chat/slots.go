// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package chat

import (
	"context"
	"sync"

	"k8s.io/apimachinery/pkg/types"
)

// slots bounds how many turns run at once.
type slots struct{ taken chan struct{} }

func newSlots(n int) *slots { return &slots{make(chan struct{}, n)} }

// take takes a slot, or reports false if none is free.
func (s *slots) take() bool {
	select {
	case s.taken <- struct{}{}:
		return true
	default:
		return false
	}
}

// wait takes a slot as soon as one is free. It reports false if ctx ends first.
func (s *slots) wait(ctx context.Context) bool {
	select {
	case s.taken <- struct{}{}:
		return true
	case <-ctx.Done():
		return false
	}
}

func (s *slots) give() { <-s.taken }

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
