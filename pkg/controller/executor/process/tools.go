// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package process

import (
	"os/exec"
	"slices"

	"github.com/platform-ai/platform/pkg/controller/executor"
)

var _ executor.ToolHost = &Executor{}

// Lacks looks for what tools need on this machine.
func (e *Executor) Lacks(tool string) string {
	switch {
	case tool == executor.ToolCodeExec && !slices.ContainsFunc([]string{"bash", "sh", "python3", "python", "node"}, installed):
		return "none of bash, sh, python3, python and node is on the server's PATH; install one"
	case tool == executor.ToolWebSearch && e.opts.SearchURL == "":
		return "no search service is set up; name one with the server's --search-url"
	default:
		return ""
	}
}

func installed(program string) bool {
	_, err := exec.LookPath(program)
	return err == nil
}
