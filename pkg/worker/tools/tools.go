// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

// Package tools binds the tools of runs to their code: for each tool that the catalogue (pkg/tool/builtin) has in Runs, the list has
// one line.
package tools

import (
	"slices"

	"github.com/platform-ai/platform/pkg/worker/tool/approval"
	"github.com/platform-ai/platform/pkg/worker/tool/codehost"
	"github.com/platform-ai/platform/pkg/worker/tool/coordination"
	"github.com/platform-ai/platform/pkg/worker/tool/exec"
	"github.com/platform-ai/platform/pkg/worker/tool/file"
	"github.com/platform-ai/platform/pkg/worker/tool/memory"
	"github.com/platform-ai/platform/pkg/worker/tool/progress"
	"github.com/platform-ai/platform/pkg/worker/tool/web"
	"github.com/platform-ai/platform/pkg/worker/toolkit"
)

// list has an entry for each tool.
var list = []toolkit.Tool{
	approval.Builtin,
	codehost.AutoMergeBuiltin,
	codehost.CheckBuiltin,
	codehost.CommentBuiltin,
	codehost.CreateBuiltin,
	codehost.IssueBuiltin,
	codehost.IssuesBuiltin,
	codehost.ListBuiltin,
	codehost.MarkerBuiltin,
	codehost.MergeBuiltin,
	codehost.MonitorBuiltin,
	codehost.PostBuiltin,
	codehost.ReviewBuiltin,
	coordination.CancelBuiltin,
	coordination.CheckBuiltin,
	coordination.ReplyBuiltin,
	coordination.ContainerBuiltin,
	coordination.CreateAgentBuiltin,
	coordination.DelegateBuiltin,
	coordination.DeleteAgentBuiltin,
	coordination.DetachBuiltin,
	coordination.SendBuiltin,
	coordination.ValidateBuiltin,
	coordination.WaitBuiltin,
	exec.Builtin,
	file.ReadBuiltin,
	file.WriteBuiltin,
	memory.ProposeBuiltin,
	memory.RecallBuiltin,
	memory.RememberBuiltin,
	memory.SearchBuiltin,
	progress.Builtin,
	web.FetchBuiltin,
	web.SearchBuiltin,
}

// Find returns the code of the tool with the given name, and false if there is none.
func Find(name string) (toolkit.Tool, bool) {
	i := slices.IndexFunc(list, func(t toolkit.Tool) bool { return t.Of.Name == name })
	if i < 0 {
		return toolkit.Tool{}, false
	}
	return list[i], true
}
