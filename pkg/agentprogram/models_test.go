// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package agentprogram

import (
	"slices"
	"strings"
	"testing"

	"github.com/platform-ai/platform/pkg/apis/core/v1alpha1"
)

// TestEffort: how hard a model is to think is told to the agents that can be told, and nothing is told where nobody said it.
func TestEffort(t *testing.T) {
	for _, effort := range []v1alpha1.ReasoningEffort{"", v1alpha1.ReasoningHigh, v1alpha1.ReasoningMax} {
		m := Models{URL: "http://127.0.0.1:1", Key: "k", Name: "m", Effort: effort}
		env, _ := programs()[v1alpha1.RuntimeClaude].Setup(m)
		told := slices.ContainsFunc(env, func(v string) bool { return strings.HasPrefix(v, "CLAUDE_CODE_EFFORT_LEVEL=") })
		if told != (effort != "") || told && !slices.Contains(env, "CLAUDE_CODE_EFFORT_LEVEL="+string(effort)) {
			t.Errorf("claude, %q: %q", effort, env)
		}
		_, files := programs()[v1alpha1.RuntimeCodex].Setup(m)
		head, _, _ := strings.Cut(files[".codex/config.toml"], "[") // of the file, before its first table
		if told := strings.Contains(head, "model_reasoning_effort"); told != (effort != "") || told && !strings.Contains(head, "\nmodel_reasoning_effort = \""+string(effort)+"\"\n") {
			t.Errorf("codex, %q: %s", effort, head)
		}
	}
}
