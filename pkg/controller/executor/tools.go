// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package executor

// ToolHost is an Executor that knows which built-in tools cannot work in its runs of tasks of type ai.
type ToolHost interface {
	// Lacks returns what a tool lacks there and how to provide it, as a clause for people; empty if it lacks nothing.
	Lacks(tool string) string
}
