// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

// Command platform-workspace fetches the repository of one task and writes the tree of an exact commit into a folder. Workers start
// it, with an order on standard input, and read its answer from standard output; in Pods it is an init container. See package workspace.
// It is not meant to be started by people.
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
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := sandbox.Seal() // the credential is read after this
	if err == nil {
		err = run(ctx)
	}
	stop()
	if err != nil {
		fmt.Fprintf(os.Stderr, "%s: %v\n", workspace.ProgramName, err)
		os.Exit(1)
	}
}

func run(ctx context.Context) error {
	if len(os.Args) > 1 && os.Args[1] == workspace.InitVerb {
		memlimit.Set(ctx) // what its container may use
		return prepare.InPod(ctx, os.Getenv)
	}
	return prepare.Main(ctx, os.Stdin, os.Stdout)
}
