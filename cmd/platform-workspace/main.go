// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

// Command platform-workspace carries out one step of what is done with the repository of a task: its argument names the step, its
// standard input has the order, and its standard output gets the answer; see package workspace. Workers and controllers start it. In
// Pods the first step is an init container, whose order is in its environment. The program is not meant to be started by people.
package main

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"syscall"

	"github.com/platform-ai/platform/pkg/memlimit"
	"github.com/platform-ai/platform/pkg/worker/sandbox"
	"github.com/platform-ai/platform/pkg/workspace"
	"github.com/platform-ai/platform/pkg/workspace/prepare"
	"github.com/platform-ai/platform/pkg/workspace/publish"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := sandbox.Seal() // the credential is read after this
	if err == nil {
		err = do(ctx, os.Args[1:])
	}
	stop()
	if err != nil {
		fmt.Fprintf(os.Stderr, "%s: %v\n", workspace.ProgramName, err)
		os.Exit(1)
	}
}

// do carries out the step that the arguments name; without any, the first of all.
func do(ctx context.Context, args []string) error {
	name := workspace.Prepare
	if len(args) > 0 {
		name = args[0]
	}
	if name == workspace.InitVerb {
		memlimit.Set(ctx) // what its container may use
		return prepare.InPod(ctx, os.Getenv)
	}
	step, ok := publish.Steps()[name]
	if !ok {
		return fmt.Errorf("there is no step %q", name)
	}
	return step(ctx, os.Stdin, os.Stdout)
}
