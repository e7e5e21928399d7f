// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package executor

import "github.com/platform-ai/platform/pkg/apis/core/v1alpha1"

// ToolHost is an Executor that knows which built-in tools cannot work in its runs of tasks of type ai.
type ToolHost interface {
	// Lacks returns what a tool lacks there and how to provide it, as a clause for people; empty if it lacks nothing.
	Lacks(tool string) string
}

// AgentHost is an Executor that runs coding agents.
type AgentHost interface {
	// LacksAgent returns why coding agents of a type cannot be run there and what to do, as a clause for people; empty if they can.
	LacksAgent(t v1alpha1.AgentRuntimeType) string
	// AgentImage returns the image in which coding agents of a type run there, pinned by its digest. Where runs are no Pods, it stands for
	// the agent's program: localhost/TYPE@sha256:DIGEST, with the digest of the program's file.
	AgentImage(t v1alpha1.AgentRuntimeType) (string, error)
}
