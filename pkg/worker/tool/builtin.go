// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package tool

import "slices"

// Builtin reports whether a name is that of a tool which every worker of a task of type ai has.
func Builtin(name string) bool { return slices.Contains(BuiltinNames(), name) }

// BuiltinNames are the tools that need no Tool object, sorted.
func BuiltinNames() []string {
	return []string{"code_exec", "file_read", "file_write", "request_approval", "web_fetch", "web_search"}
}
