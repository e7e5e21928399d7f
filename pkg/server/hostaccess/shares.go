// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package hostaccess

import (
	"context"
	"sync"
)

// maxCalls is how many calls of a namespace are carried out at a time. Others wait.
const maxCalls = 4

// shares are the calls of namespaces. A code host that does not answer holds up its own namespace alone.
type shares struct {
	mu sync.Mutex
	of map[string]*share
}

type share struct {
	slots chan struct{}
	users int
}

func newShares() *shares { return &shares{of: map[string]*share{}} }

// take waits for the turn of a call, which ends with release.
func (s *shares) take(ctx context.Context, namespace string) (release func(), err error) {
	s.mu.Lock()
	mine := s.of[namespace]
	if mine == nil {
		mine = &share{slots: make(chan struct{}, maxCalls)}
		s.of[namespace] = mine
	}
	mine.users++
	s.mu.Unlock()
	leave := func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		if mine.users--; mine.users == 0 {
			delete(s.of, namespace)
		}
	}
	select {
	case mine.slots <- struct{}{}:
		return func() { <-mine.slots; leave() }, nil
	case <-ctx.Done():
		leave()
		return nil, context.Cause(ctx)
	}
}
