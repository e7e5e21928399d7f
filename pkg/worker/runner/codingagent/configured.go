// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package codingagent

import (
	"fmt"
	"os"
	"slices"
	"strings"

	"github.com/platform-ai/platform/pkg/apis/core/v1alpha1"
	"github.com/platform-ai/platform/pkg/worker/runner"
)

// configuring are the files and folders, in lower case, with which a repository configures coding agents. They start programs or change
// what is allowed before the first prompt, and nobody is there to ask.
var configuring = []string{".mcp.json", ".claude", ".codex", ".opencode", "opencode.json", "opencode.jsonc", ".copilot", ".cursor", ".gemini", ".envrc"}

// configured refuses a workspace that configures coding agents. Agents read such files of the folder in which they are started.
func configured(workDir string) error {
	entries, err := os.ReadDir(workDir)
	if err != nil {
		return runner.Fail(v1alpha1.ReasonWorkerMisconfigured, "the working folder: %w", err)
	}
	var found []string
	for _, e := range entries {
		if slices.Contains(configuring, strings.ToLower(e.Name())) {
			found = append(found, fmt.Sprintf("%q", e.Name()))
		}
	}
	if len(found) == 0 {
		return nil
	}
	return runner.Fail(v1alpha1.ReasonWorkspaceRefused, "the repository configures coding agents (%s), which would act before the first prompt: not supported yet for tasks of type agent; "+
		"name a folder without them in spec.workspace.subPath, or a ref", strings.Join(found, ", "))
}
