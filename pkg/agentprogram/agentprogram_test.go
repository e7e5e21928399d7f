// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package agentprogram

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/platform-ai/platform/pkg/apis/core/v1alpha1"
)

// TestFind: the operator's program comes before PATH, and what is missing is refused with what to do.
func TestFind(t *testing.T) {
	dir := t.TempDir()
	for name, mode := range map[string]os.FileMode{"codex-acp": 0o755, "mine": 0o755, "opencode": 0o644} {
		if err := os.WriteFile(filepath.Join(dir, name), nil, mode); err != nil {
			t.Fatal(err)
		}
	}
	mine := filepath.Join(dir, "mine")
	for _, tc := range []struct {
		given []string
		kind  v1alpha1.AgentRuntimeType
		file  string
		err   string
	}{
		{nil, v1alpha1.RuntimeCodex, filepath.Join(dir, "codex-acp"), ""},
		{[]string{"codex=" + mine}, v1alpha1.RuntimeCodex, mine, ""},
		{[]string{"claude=" + mine}, v1alpha1.RuntimeCodex, filepath.Join(dir, "codex-acp"), ""},
		{nil, v1alpha1.RuntimeOpenCode, "", "npm install -g opencode-ai, or name another one with --agent-runtime opencode=PATH"},
		{[]string{"codex=" + dir + "/gone"}, v1alpha1.RuntimeCodex, "", "is gone"},
		{nil, "strange", "", "known are claude, codex, copilot, opencode"},
	} {
		g, err := ParseGiven(tc.given)
		if err != nil || !slices.Equal(g.List(), tc.given) {
			t.Fatal(g.List(), err)
		}
		if _, file, err := (Where{Given: g, Path: "relative:" + dir}).Find(tc.kind); file != tc.file || (err == nil) != (tc.err == "") || err != nil && !strings.Contains(err.Error(), tc.err) {
			t.Errorf("%v, %s: %s, %v", tc.given, tc.kind, file, err)
		}
	}
	_, _, err := Where{Path: dir, Image: "registry.example/agents:1"}.Find(v1alpha1.RuntimeOpenCode)
	for _, want := range []string{"registry.example/agents:1", "opencode", dir, "npm install -g opencode-ai", "--acp-opencode-runtime-image"} {
		if err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "--agent-runtime") {
			t.Errorf("an image without the program: %v, want %q", err, want)
		}
	}
	for _, list := range [][]string{{"codex"}, {"strange=/x"}, {"codex=x"}, {"codex=/a,b"}, {"codex=/a", "codex=/b"}} {
		if g, err := ParseGiven(list); err == nil {
			t.Errorf("%q: %v", list, g)
		}
	}
	if g, err := ParseGiven([]string{"codex=" + dir}); err != nil || g.Check() == nil {
		t.Errorf("a folder is a program: %v", err)
	}
}
