// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

// Command platform-worker runs one attempt of one task. It is started by an
// executor, which tells it everything by environment and standard input; see
// package runspec. People do not start it.
//
// "platform-worker install DIR" copies the program into a folder, for a
// container of another image. The one flag is --profiling-bind-address, for
// which platform-standalone is given a script as --worker-binary.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"syscall"

	"github.com/spf13/pflag"
	"k8s.io/klog/v2"

	"github.com/platform-ai/platform/pkg/profiling"
	"github.com/platform-ai/platform/pkg/runspec"
	"github.com/platform-ai/platform/pkg/worker"
)

func main() {
	os.Exit(run())
}

func run() int {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	defer klog.Flush()
	if len(os.Args) == 3 && os.Args[1] == "install" {
		if err := worker.Install(os.Args[2]); err != nil {
			fmt.Fprintln(os.Stderr, "platform-worker:", err)
			return runspec.ExitFailed
		}
		return runspec.ExitSucceeded
	}
	var profiles profiling.Address
	fs := pflag.NewFlagSet("platform-worker", pflag.ContinueOnError)
	profiles.AddFlag(fs)
	if err := fs.Parse(os.Args[1:]); err != nil {
		if errors.Is(err, pflag.ErrHelp) {
			return runspec.ExitSucceeded
		}
		fmt.Fprintln(os.Stderr, "platform-worker:", err)
		return runspec.ExitUsage
	}
	stopProfiling, err := profiles.Serve(ctx)
	if err != nil {
		fmt.Fprintln(os.Stderr, "platform-worker:", err)
		return runspec.ExitUsage
	}
	defer stopProfiling()
	if err := worker.Seal(os.Getenv, os.Stdin); err != nil {
		fmt.Fprintln(os.Stderr, "platform-worker:", err)
		return runspec.ExitFailed
	}
	return worker.Main(ctx, os.Getenv, os.Stdin)
}
