// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

// Command scriptedagent is a coding agent that speaks the Agent Client Protocol and does what its prompt says; see package agent.
package main

import (
	"os"

	"github.com/platform-ai/platform/test/scriptedagent/agent"
)

func main() { os.Exit(agent.Run(os.Stdin, os.Stdout, os.Stderr)) }
