// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package executor

// ToolHost is an Executor that knows which built-in tools cannot work in its runs of tasks of type ai.
type ToolHost interface {
	// Lacks says what a tool lacks there and how it can be had, as a clause for people; empty for nothing.
	Lacks(tool string) string
}
