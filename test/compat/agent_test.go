// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package compat

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/platform-ai/platform/test/kit"
)

// coding is a model that writes a file, reads it with a command, and reports.
const coding = `
apiKey: ` + vendorKey + `
models: [m]
turns:
- match: {contains: "write hello", offered: [write, bash]}
  reply: {text: I write it., toolCalls: [{name: write, arguments: {filePath: hello.txt, content: "hello from a model\n"}}]}
- match: {lastRole: tool, turn: 2}
  reply: {text: I read it., toolCalls: [{name: bash, arguments: {command: "cat hello.txt && echo done >> log.txt", description: Reads the file}}]}
- match: {lastRole: tool, contains: hello from a model}
  reply: {text: The file says hello.}
- match: {}
  reply: {text: A title}
`

// TestCodingAgent: opencode, a coding agent from npm, works through the router on the APIs of both vendors.
func TestCodingAgent(t *testing.T) {
	t.Parallel()
	kit.Needs(t, kit.Clients)
	strangers(t)
	agent := module(t, "opencode-linux-x64/bin/opencode")
	s, v := onTools(t, coding)
	token, router := s.Token(t, "team", "client", "chat"), s.router()
	for _, tt := range []struct{ name, adapter, base, model string }{
		{"chat completions", "@ai-sdk/openai-compatible", router + "/openai/v1", "openai/m"},
		{"chat completions, of the other protocol", "@ai-sdk/openai-compatible", router + "/openai/v1", "claude/m"},
		{"messages, of the other protocol", "@ai-sdk/anthropic", router + "/anthropic/v1", "openai/m"},
		{"messages", "@ai-sdk/anthropic", router + "/anthropic/v1", "claude/m"},
	} {
		dir, home := t.TempDir(), t.TempDir()
		config := map[string]any{
			"autoupdate": false, "share": "disabled", "snapshot": false, "permission": map[string]string{"*": "allow"},
			"enabled_providers": []string{"team"}, "model": "team/" + tt.model, "small_model": "team/" + tt.model,
			"provider": map[string]any{"team": map[string]any{
				"npm": tt.adapter, "name": "team",
				// The agent brings tools of its own, and therefore gets them without a header.
				"options": map[string]any{"baseURL": tt.base, "apiKey": token},
				"models":  map[string]any{tt.model: map[string]any{"name": "m", "tool_call": true, "limit": map[string]int{"context": 100000, "output": 4000}}},
			}},
		}
		raw, err := json.Marshal(config)
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, "opencode.json"), raw, 0o600); err != nil {
			t.Fatal(err)
		}
		cmd := exec.CommandContext(t.Context(), agent, "run", "--model", "team/"+tt.model, "write hello into hello.txt")
		cmd.Dir = dir
		cmd.Env = []string{
			"PATH=" + os.Getenv("PATH"), "HOME=" + home, "TMPDIR=" + home, "OPENCODE_DISABLE_AUTOUPDATE=1", "OPENCODE_DISABLE_MODELS_FETCH=1",
			"OPENCODE_DISABLE_LSP_DOWNLOAD=1", "OPENCODE_DISABLE_DEFAULT_PLUGINS=1",
		}
		_, before := v.last()
		out, err := cmd.CombinedOutput()
		last, after := v.last()
		if err != nil || !strings.Contains(string(out), "The file says hello.") || after-before < 3 {
			t.Errorf("%s: %v after %d requests\n%s", tt.name, err, after-before, out)
			continue
		}
		if file, err := os.ReadFile(filepath.Join(dir, "hello.txt")); err != nil || string(file) != "hello from a model\n" {
			t.Errorf("%s: the file has %q, %v", tt.name, file, err)
		}
		if strings.Contains(last.body, token) || strings.Contains(last.header.Get("Authorization")+last.header.Get("X-Api-Key"), token) {
			t.Errorf("%s: the vendor got the client's token", tt.name)
		}
	}
}
