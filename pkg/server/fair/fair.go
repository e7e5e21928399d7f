// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

// Package fair divides a limited amount of something among users. A user may hold at most as much as remains free. One
// user alone thus gets half of it, two get a third each, and a new caller always gets some.
package fair

import "sync"

// Share is the amount and what is held of it. All methods may be called concurrently.
type Share struct {
	mu    sync.Mutex
	total int64
	held  int64
	users map[string]int64 // what each holds; none holds 0
}

// New makes a share of which nothing is held.
func New(total int64) *Share { return &Share{total: total, users: map[string]int64{}} }

// Acquire takes n for a user and reports whether it could. n must not be negative.
func (s *Share) Acquire(user string, n int64) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.users[user]+n > s.total-s.held {
		return false
	}
	if n > 0 {
		s.held += n
		s.users[user] += n
	}
	return true
}

// Release gives back n of what a user holds.
func (s *Share) Release(user string, n int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.held -= n
	if s.users[user] -= n; s.users[user] == 0 {
		delete(s.users, user)
	}
}

// Held returns how much is held, and by how many users.
func (s *Share) Held() (n int64, users int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.held, len(s.users)
}
