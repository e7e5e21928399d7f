// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package toolkit

import (
	"strings"
	"sync"
)

// Heads remembers which commit a run has last seen as the head of each pull request, so that it reviews and merges no other. The zero
// value has seen none. It may be used by several goroutines at a time.
type Heads struct {
	mu   sync.Mutex
	seen map[pullRequest]string
	// newest has the last one of each number, in whatever repository.
	newest map[int64]string
}

// pullRequest is a pull request of the repository with an address; an empty address is that of the call's task.
type pullRequest struct {
	repository string
	number     int64
}

func pullRequestOf(address string, number int64) pullRequest {
	return pullRequest{strings.ToLower(strings.TrimSuffix(strings.TrimSuffix(address, "/"), ".git")), number}
}

// Saw remembers a head. The address is the one that the call named; it may be empty. An empty commit changes nothing.
func (h *Heads) Saw(address string, number int64, commit string) {
	if commit == "" {
		return
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.seen == nil {
		h.seen, h.newest = map[pullRequest]string{}, map[int64]string{}
	}
	h.seen[pullRequestOf(address, number)], h.newest[number] = commit, commit
}

// Of returns the head that the run has last seen; empty for none. A call without an address gets the last one of the number, since the
// pull request may have been looked at with an address. A call with one gets that of the address, or else that of calls without one.
func (h *Heads) Of(address string, number int64) string {
	h.mu.Lock()
	defer h.mu.Unlock()
	if address == "" {
		return h.newest[number]
	}
	if commit, ok := h.seen[pullRequestOf(address, number)]; ok {
		return commit
	}
	return h.seen[pullRequestOf("", number)]
}
