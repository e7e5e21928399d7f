// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

// Command platform-worker runs one attempt of one task. An executor starts it and passes all settings in the
// environment and on standard input; see package runspec. It is not meant to be started by people. Its only flag is
// --profiling-bind-address.
//
// "platform-worker install DIR" copies the program into a directory, for a container that runs another image.
package main

import (
	"context"
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
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	code, err := run(ctx, os.Args[1:])
	if err != nil {
		fmt.Fprintln(os.Stderr, "platform-worker:", err)
	}
	stop()
	klog.Flush()
	os.Exit(code)
}

func run(ctx context.Context, args []string) (int, error) {
	if len(args) == 2 && args[0] == "install" {
		if err := worker.Install(args[1]); err != nil {
			return runspec.ExitFailed, err
		}
		return runspec.ExitSucceeded, nil
	}
	var profiles profiling.Address
	fs := pflag.NewFlagSet("platform-worker", pflag.ContinueOnError)
	profiles.AddFlag(fs)
	if err := fs.Parse(args); err != nil {
		return runspec.ExitUsage, err
	}
	stop, err := profiles.Serve(ctx)
	if err != nil {
		return runspec.ExitUsage, err
	}
	defer stop()
	if err := worker.Seal(os.Getenv, os.Stdin); err != nil {
		return runspec.ExitFailed, err
	}
	return worker.Main(ctx, os.Getenv, os.Stdin), nil
}
