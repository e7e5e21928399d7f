// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package process

import (
	"fmt"
	"os/exec"
	"slices"
	"strings"

	"github.com/platform-ai/platform/pkg/controller/executor"
	"github.com/platform-ai/platform/pkg/tool/builtin"
	code "github.com/platform-ai/platform/pkg/worker/tool/exec"
)

var _ executor.ToolHost = &Executor{}

// Lacks implements executor.ToolHost: it checks whether this machine has what a tool needs.
func (e *Executor) Lacks(tool string) string {
	switch {
	case tool == builtin.CodeExec.Name && !slices.ContainsFunc(code.Interpreters(), installed):
		return fmt.Sprintf("none of %s is on the server's PATH; install one", strings.Join(code.Interpreters(), ", "))
	case tool == builtin.WebSearch.Name && e.opts.SearchURL == "":
		return "no search service is set up; name one with the server's --search-url"
	default:
		return ""
	}
}

func installed(program string) bool {
	_, err := exec.LookPath(program)
	return err == nil
}
