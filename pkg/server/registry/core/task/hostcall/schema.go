// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package hostcall

import (
	"sync"

	"github.com/platform-ai/platform/pkg/codehost/operation"
	"github.com/platform-ai/platform/pkg/tool"
	"github.com/platform-ai/platform/pkg/tool/builtin"
)

// schemas checks arguments against the schemas that models are given.
var schemas = sync.OnceValue(func() *tool.Catalogue {
	var all []tool.Tool
	for _, t := range builtin.In(builtin.Runs) {
		if _, ok := operation.Find(t.Name); ok || t == builtin.CreatePRMonitor {
			all = append(all, tool.New[struct{}](t.Definition(), nil)) // of which only the description is used
		}
	}
	c, err := tool.NewCatalogue(all...)
	if err != nil {
		panic(err) // a test of the catalogue of tools compiles all schemas
	}
	return c
})
