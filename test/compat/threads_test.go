// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package compat

import (
	"testing"

	"github.com/platform-ai/platform/test/kit"
)

// The tool runner of Anthropic's client begins a thread of the vendor. It is refused, and goes on by itself with whole conversations.
func TestNPMThreads(t *testing.T) {
	t.Parallel()
	kit.Needs(t, kit.NPM)
	s, token := onScript(t)
	runNode(t, "threads", "threads.mjs", 5, "BASE="+s.RESTURL, "TOKEN="+token)
}
