// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package agentprogram

import (
	"strings"
	"testing"

	"github.com/spf13/pflag"

	"github.com/platform-ai/platform/pkg/apis/core/v1alpha1"
)

// TestImages: images are read from flags and, below these, from the environment. One that others could replace is refused, and what has
// none is not available.
func TestImages(t *testing.T) {
	digest := "@sha256:" + strings.Repeat("0a", 32)
	parsed := func(args ...string) Images {
		i, fs := Images{}, pflag.NewFlagSet("test", pflag.ContinueOnError)
		i.AddFlags(fs)
		if err := fs.Parse(args); err != nil {
			t.Fatal(err)
		}
		return i
	}
	if i := parsed(); i.Check() != nil || i.Of(v1alpha1.RuntimeClaude) != "" {
		t.Errorf("without flags: %v, %v", i.Check(), i)
	}
	t.Setenv("PLATFORM_ACP_CODEX_RUNTIME_IMAGE", "registry.example:5000/agents/codex:1"+digest)
	t.Setenv("PLATFORM_ACP_CLAUDE_RUNTIME_IMAGE", "claude:1")
	i := parsed("--acp-claude-runtime-image=claude"+digest, "--acp-opencode-runtime-image=opencode"+digest)
	if err := i.Check(); err != nil {
		t.Error(err)
	}
	for kind, want := range map[v1alpha1.AgentRuntimeType]string{
		v1alpha1.RuntimeCodex: "registry.example:5000/agents/codex:1" + digest, v1alpha1.RuntimeClaude: "claude" + digest, v1alpha1.RuntimeOpenCode: "opencode" + digest, v1alpha1.RuntimeCopilot: "",
	} {
		if got := i.Of(kind); got != want {
			t.Errorf("%s runs in %q, want %q", kind, got, want)
		}
		if lacks := i.Lacks(kind); (lacks == "") != (want != "") {
			t.Errorf("%s lacks %q", kind, lacks)
		}
	}
	for _, want := range []string{"copilot", "npm install -g @github/copilot", "--acp-copilot-runtime-image"} {
		if lacks := i.Lacks(v1alpha1.RuntimeCopilot); !strings.Contains(lacks, want) {
			t.Errorf("it lacks %q, want %q", lacks, want)
		}
	}
	if lacks := i.Lacks("strange"); !strings.Contains(lacks, "known are claude, codex, copilot, opencode") {
		t.Errorf("a strange one lacks %q", lacks)
	}
	if err := parsed("--acp-claude-runtime-image=").Check(); err != nil {
		t.Error(err)
	}
	if err := parsed().Check(); err == nil || !strings.Contains(err.Error(), `--acp-claude-runtime-image: "claude:1"`) {
		t.Errorf("of the environment: %v", err)
	}
	t.Setenv("PLATFORM_ACP_CLAUDE_RUNTIME_IMAGE", "")
	for _, image := range []string{"codex", "codex:1", "codex@sha256:0a", "codex:1" + digest + " ", digest, "codex@sha256:" + strings.Repeat("0A", 32)} {
		if err := parsed("--acp-codex-runtime-image=" + image).Check(); err == nil || !strings.Contains(err.Error(), "--acp-codex-runtime-image") || !strings.Contains(err.Error(), "NAME@sha256:DIGEST") {
			t.Errorf("%q: %v", image, err)
		}
	}
}
