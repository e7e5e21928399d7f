// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package chat

import (
	"sync"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/lru"

	"github.com/platform-ai/platform/pkg/redact"
)

// maxRemembered is of how many sessions the removed secrets are remembered: those with the latest turns. Those of one session
// take half a megabyte at most (see redact.Seen).
const maxRemembered = 64

// removals holds the secrets that were removed from turns, by session. They are in the memory of this process alone and never
// stored, so a restart forgets them.
type removals struct {
	mu    sync.Mutex
	known *lru.Cache
}

func newRemovals() *removals { return &removals{known: lru.New(maxRemembered)} }

// of returns what was removed in a session. Its turns add to it.
func (r *removals) of(session types.UID) *redact.Seen {
	r.mu.Lock()
	defer r.mu.Unlock()
	if found, ok := r.known.Get(session); ok {
		if seen, ok := found.(*redact.Seen); ok {
			return seen
		}
	}
	seen := &redact.Seen{}
	r.known.Add(session, seen)
	return seen
}

// forget removes what is known of a session.
func (r *removals) forget(session types.UID) { r.known.Remove(session) }
