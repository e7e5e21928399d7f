// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

// Package command is the command line of the programs that are workers.
package command

import (
	"context"
	"os"

	"github.com/spf13/pflag"

	"github.com/platform-ai/platform/pkg/profiling"
	"github.com/platform-ai/platform/pkg/runspec"
	"github.com/platform-ai/platform/pkg/worker"
)

// Run runs a worker that has these runners, with the arguments of its program, and returns its exit code. Its settings are
// in the environment and on standard input.
func Run(ctx context.Context, name string, args []string, runners worker.Runners) (int, error) {
	if len(args) == 2 && args[0] == "install" {
		if err := worker.Install(args[1]); err != nil {
			return runspec.ExitFailed, err
		}
		return runspec.ExitSucceeded, nil
	}
	var profiles profiling.Address
	fs := pflag.NewFlagSet(name, pflag.ContinueOnError)
	profiles.AddFlag(fs)
	if err := fs.Parse(args); err != nil {
		return runspec.ExitUsage, err
	}
	stop, err := profiles.Serve(ctx)
	if err != nil {
		return runspec.ExitUsage, err
	}
	defer stop()
	if os.Getenv(runspec.EnvStandby) == "true" {
		if assigned, err := worker.StandBy(os.Stdin); err != nil {
			return runspec.ExitUsage, err
		} else if !assigned {
			return runspec.ExitSucceeded, nil
		}
	}
	if err := worker.Seal(os.Getenv, os.Stdin); err != nil {
		return runspec.ExitFailed, err
	}
	return worker.Main(ctx, os.Getenv, os.Stdin, runners), nil
}
