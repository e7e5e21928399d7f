// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

// Package builtin lists the tools that every task of type ai can use without a Tool object.
// Workers create them; servers and controllers only use their names.
package builtin

import (
	"slices"
	"strings"
	"sync"

	"github.com/platform-ai/platform/pkg/tool"
	"github.com/platform-ai/platform/pkg/worker/tool/approval"
	"github.com/platform-ai/platform/pkg/worker/tool/coordination"
	"github.com/platform-ai/platform/pkg/worker/tool/exec"
	"github.com/platform-ai/platform/pkg/worker/tool/file"
	"github.com/platform-ai/platform/pkg/worker/tool/memory"
	"github.com/platform-ai/platform/pkg/worker/tool/progress"
	"github.com/platform-ai/platform/pkg/worker/tool/web"
	"github.com/platform-ai/platform/pkg/worker/toolkit"
)

// list has an entry for each tool.
var list = []toolkit.Builtin{
	approval.Builtin,
	coordination.CancelBuiltin,
	coordination.CheckBuiltin,
	coordination.ContainerBuiltin,
	coordination.CreateAgentBuiltin,
	coordination.DelegateBuiltin,
	coordination.DeleteAgentBuiltin,
	coordination.DetachBuiltin,
	coordination.SendBuiltin,
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

// Find returns the tool with the given name, and false if there is none.
func Find(name string) (toolkit.Builtin, bool) {
	i := slices.IndexFunc(list, func(b toolkit.Builtin) bool { return b.Name == name })
	if i < 0 {
		return toolkit.Builtin{}, false
	}
	return list[i], true
}

// Definitions returns how the tools that users choose from are described to models, in the order of their names.
func Definitions() []tool.Definition { return slices.Clone(definitions()) }

var definitions = sync.OnceValue(func() []tool.Definition {
	var all []tool.Definition
	for _, b := range list {
		switch {
		case b.Unlisted:
		case b.Describe != nil:
			all = append(all, b.Describe())
		default:
			// A tool that needs a run to be described has Describe; a test makes sure of it.
			if t, err := b.New(toolkit.Given{}); err == nil {
				all = append(all, t.Definition())
			}
		}
	}
	slices.SortFunc(all, func(a, b tool.Definition) int { return strings.Compare(a.Name, b.Name) })
	return all
})

// Has reports whether there is a tool with the given name.
func Has(name string) bool {
	_, ok := Find(name)
	return ok
}
