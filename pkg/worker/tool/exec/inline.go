// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package exec

import (
	"slices"

	"github.com/platform-ai/platform/pkg/tool"
	"github.com/platform-ai/platform/pkg/tool/builtin"
)

// maxInline is the longest program that CommandLine accepts, in bytes. Linux allows an argument 128 KiB.
const maxInline = 96 << 10

// CommandLine returns the command that runs the program elsewhere, as an argument of its interpreter, which is looked for
// there. The error is a *tool.Error.
func CommandLine(a builtin.CodeArguments) ([]string, error) {
	i := slices.IndexFunc(languages(), func(l language) bool { return l.name == a.Language })
	if i < 0 {
		return nil, tool.InvalidArguments("language: %.32q is not known", a.Language)
	}
	in := languages()[i]
	if reason := destructive(a.Code, in.shell); reason != "" {
		return nil, refusedProgram(reason)
	}
	if len(a.Code) > maxInline {
		return nil, tool.InvalidArguments("code: has %d bytes, at most %d are allowed here", len(a.Code), maxInline)
	}
	return []string{in.programs[0], in.inline, a.Code}, nil
}

// Seconds returns how long the program may take.
func Seconds(a builtin.CodeArguments) int {
	if a.Timeout == nil {
		return defaultTimeout
	}
	return min(*a.Timeout, maxTimeout)
}

func refusedProgram(reason string) *tool.Error {
	return tool.Errorf(tool.TypePermissionDenied, "the program was not run: %s", reason).Suggest("work on files in the working folder only")
}
