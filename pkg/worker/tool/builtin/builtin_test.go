// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package builtin_test

import (
	"encoding/json"
	"slices"
	"testing"

	"github.com/platform-ai/platform/pkg/worker/tool/builtin"
)

// TestDefinitions: every tool that users choose from can be described without a run, and no tool of coordination is
// among them.
func TestDefinitions(t *testing.T) {
	var names []string
	for _, d := range builtin.Definitions() {
		names = append(names, d.Name)
		if d.Description == "" || !json.Valid(d.Parameters) {
			t.Errorf("%s: %q, parameters %s", d.Name, d.Description, d.Parameters)
		}
	}
	want := []string{
		"code_exec", "file_read", "file_write", "propose_memory", "recall_memory", "remember", "request_approval", "search_transcript",
		"web_fetch", "web_search",
	}
	if !slices.Equal(names, want) {
		t.Errorf("got %q, want %q", names, want)
	}
}
