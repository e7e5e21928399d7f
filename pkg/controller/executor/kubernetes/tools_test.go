// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package kubernetes

import (
	"strings"
	"testing"

	"github.com/platform-ai/platform/pkg/agentprogram"
	"github.com/platform-ai/platform/pkg/apis/core/v1alpha1"
)

// TestLacks: what a tool lacks in the Pods of this executor, which depends on its options.
func TestLacks(t *testing.T) {
	interpreters := func(o *Options) { o.AIImage = "platform.ai/runs:dev" }
	search := func(o *Options) { o.SearchURL = "https://search.example" }
	for _, tc := range []struct {
		tool    string
		options func(*Options)
		want    string // part of it; empty if nothing is lacking
	}{
		{"code_exec", nil, "--ai-worker-image"},
		{"code_exec", search, "--ai-worker-image"},
		{"code_exec", interpreters, ""},
		{"web_search", nil, "--search-url"},
		{"web_search", interpreters, "--search-url"},
		{"web_search", search, ""},
		{"file_read", nil, ""},
		{"web_fetch", nil, ""},
		{"nosuch", nil, ""},
	} {
		got := testExecutor(t, tc.options).Lacks(tc.tool)
		if (got == "") != (tc.want == "") || !strings.Contains(got, tc.want) {
			t.Errorf("%s lacks %q, want %q", tc.tool, got, tc.want)
		}
	}
}

// TestLacksAgent: a coding agent needs an image that the operator named for its type.
func TestLacksAgent(t *testing.T) {
	e := testExecutor(t, func(o *Options) { o.AgentImages = agentprogram.Images{v1alpha1.RuntimeCodex: new(agentImage)} })
	if why := e.LacksAgent(v1alpha1.RuntimeCodex); why != "" {
		t.Errorf("codex lacks %q", why)
	}
	if image, err := e.AgentImage(v1alpha1.RuntimeCodex); err != nil || image != agentImage {
		t.Errorf("image %q, %v", image, err)
	}
	if image, err := e.AgentImage(v1alpha1.RuntimeClaude); err == nil {
		t.Errorf("an image that nobody named: %q", image)
	}
	if why := e.LacksAgent(v1alpha1.RuntimeClaude); !strings.Contains(why, "--acp-claude-runtime-image") {
		t.Errorf("claude lacks %q", why)
	}
	if why := testExecutor(t, nil).LacksAgent(v1alpha1.RuntimeCodex); !strings.Contains(why, "--acp-codex-runtime-image") {
		t.Errorf("without any image codex lacks %q", why)
	}
}
