// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package process

import (
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strings"

	"github.com/platform-ai/platform/pkg/agentprogram"
	"github.com/platform-ai/platform/pkg/apis/core/v1alpha1"
	"github.com/platform-ai/platform/pkg/controller/executor"
	"github.com/platform-ai/platform/pkg/tool/builtin"
	code "github.com/platform-ai/platform/pkg/worker/tool/exec"
)

var (
	_ executor.ToolHost  = &Executor{}
	_ executor.AgentHost = &Executor{}
)

// LacksAgent implements executor.AgentHost: it looks for the program of a coding agent. The worker looks for it again, in the same PATH.
func (e *Executor) LacksAgent(t v1alpha1.AgentRuntimeType) string {
	if _, err := e.agentFile(t); err != nil {
		return err.Error()
	}
	return ""
}

func (e *Executor) agentFile(t v1alpha1.AgentRuntimeType) (string, error) {
	_, file, err := (agentprogram.Where{Given: e.opts.AgentPrograms, Path: os.Getenv("PATH")}).Find(t)
	return file, err
}

// AgentImage implements executor.AgentHost. The program's file is read again only when it has changed.
func (e *Executor) AgentImage(t v1alpha1.AgentRuntimeType) (string, error) {
	file, err := e.agentFile(t)
	if err != nil {
		return "", err
	}
	digest, err := e.programs.Digest(file)
	if err != nil {
		return "", fmt.Errorf("the program of %s: %w", t, err)
	}
	return fmt.Sprintf("localhost/%s@sha256:%s", t, digest), nil
}

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
