// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

// Command platform-worker runs one attempt of one task. An executor starts it and passes all settings in the
// environment and on standard input; see package runspec. It is not meant to be started by people. Its only flag is
// --profiling-bind-address.
//
// "platform-worker install DIR" copies the program into a directory, for a container that runs another image.
package main

import (
	"github.com/platform-ai/platform/pkg/worker/command"
	"github.com/platform-ai/platform/pkg/worker/runners"
)

func main() { command.Main("platform-worker", runners.All()) }
