// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package compat

import "sync"

// slots bounds how many requests are answered at a time. A caller may have at most as many as remain free, so one
// caller alone gets half of them, and a newcomer always finds one.
type slots struct {
	mu    sync.Mutex
	free  int
	users map[string]int
}

func newSlots(n int) *slots { return &slots{free: n, users: map[string]int{}} }

// acquire takes a slot for a user and reports whether there was one.
func (s *slots) acquire(user string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.users[user] >= s.free {
		return false
	}
	s.free--
	s.users[user]++
	return true
}

func (s *slots) release(user string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.free++
	if s.users[user]--; s.users[user] == 0 {
		delete(s.users, user)
	}
}
