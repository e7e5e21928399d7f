// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package toolkit

import (
	"strings"
	"sync"
)

// Heads remembers which commit a run has last read as the head of each pull request, so that it reviews and merges no other. Where a run
// has read no change, it is the commit whose checks it has last seen. The zero value has seen none. It may be used by several goroutines
// at a time.
type Heads struct {
	mu   sync.Mutex
	seen map[pullRequest]string
	// read has those of which the change was read.
	read map[pullRequest]bool
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

// Read remembers a head whose change was read. The address is the one that the call named; it may be empty. An empty commit changes
// nothing.
func (h *Heads) Read(address string, number int64, commit string) {
	h.remember(address, number, commit, true)
}

// Checked remembers a head whose checks were seen, unless the change of one was read: a run that has read another commit must read this
// one, too, before it reviews or merges it.
func (h *Heads) Checked(address string, number int64, commit string) {
	h.remember(address, number, commit, false)
}

func (h *Heads) remember(address string, number int64, commit string, read bool) {
	if commit == "" {
		return
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.seen == nil {
		h.seen, h.read, h.newest = map[pullRequest]string{}, map[pullRequest]bool{}, map[int64]string{}
	}
	at := pullRequestOf(address, number)
	if !read && h.read[at] {
		return
	}
	h.seen[at], h.read[at], h.newest[number] = commit, read, commit
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
