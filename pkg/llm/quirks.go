// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package llm

import (
	"sync"
	"sync/atomic"
)

// Quirks are what a server was found not to support. Compatible servers differ and do not announce it, so it is learned from
// requests that they refuse.
type Quirks struct {
	// NewMaxTokens means that max_completion_tokens must be sent in place of max_tokens.
	NewMaxTokens atomic.Bool
	// NoUsageOption means that stream_options is refused, so the usage of a stream stays unknown.
	NoUsageOption atomic.Bool
	// NoThinking means that the server refuses the thinking that it wrote itself.
	NoThinking atomic.Bool

	mu sync.Mutex
	// lacks are the hints that models refuse.
	lacks map[hint]bool
}

// hint is a member of requests that an answer can do without, and the model that was asked.
type hint struct{ model, member string }

// maxLacks bounds what is kept, because clients name the models.
const maxLacks = 1000

// Lacks reports whether a model was found to refuse a hint.
func (q *Quirks) Lacks(model, member string) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.lacks[hint{model, member}]
}

// Lack notes that a model refuses a hint.
func (q *Quirks) Lack(model, member string) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.lacks == nil || len(q.lacks) >= maxLacks {
		q.lacks = map[hint]bool{}
	}
	q.lacks[hint{model, member}] = true
}
