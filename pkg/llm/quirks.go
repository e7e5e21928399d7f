// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package llm

import "sync/atomic"

// Quirks are what a server was found not to support. Compatible servers differ and do not announce it, so it is learned from
// requests that they refuse.
type Quirks struct {
	// NewMaxTokens means that max_completion_tokens must be sent in place of max_tokens.
	NewMaxTokens atomic.Bool
	// NoUsageOption means that stream_options is refused, so the usage of a stream stays unknown.
	NoUsageOption atomic.Bool
	// NoThinking means that the server refuses the thinking that it wrote itself.
	NoThinking atomic.Bool
}
