// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

// Command tier runs the tests of one tier, which the Makefile lists, and says at the end what came of them.
//
//	tier run [-rest TEXT] NAME COMMAND...    one command: "make test" and .ci/run
//	tier parts [-only NAMES] NAME PART...    "make part-PART" for each part: "make acceptance"
//
// hack/gotest.sh writes what the tests do to $TIER_OUT as the events of test2json. From them tier makes the summary: a line of counts,
// what was skipped and why, a JUnit file, and the tests that passed at the second try, with both outputs and the load of the machine.
//
// # What must not be left
//
// A tier fails if anything of it is left when its command has ended: a process, a mount, a control group, a network namespace, or a
// file in the folder for temporary files. Processes are found exactly, not by name: tier is the subreaper (PR_SET_CHILD_SUBREAPER) of
// all that its command starts, so whatever detaches itself from its parent becomes a child of tier. What is left is named and ended. So
// are control groups: the command runs in one of its own, and servers make theirs below it. Other servers on the machine, and other
// tiers, therefore change nothing.
//
// # Parts
//
// Each part has a folder below _output/NAME/COMMIT. A part that passed on this commit is not run again, so a second call goes on where
// the first one failed or was interrupted. With changes that are not committed every part is run.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"time"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := command(ctx, os.Args[1:], os.Stdout)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "tier:", err)
		os.Exit(1)
	}
}

var errUsage = errors.New("usage: tier run [-rest TEXT] NAME COMMAND, or tier parts [-only NAMES] NAME PART [PART]")

func command(ctx context.Context, args []string, out io.Writer) error {
	if len(args) == 0 {
		return errUsage
	}
	flags := flag.NewFlagSet("tier", flag.ContinueOnError)
	rest := flags.String("rest", "", "what runs the tests that this tier leaves out, for the summary")
	ending := flags.Duration("ending", 30*time.Second, "how long what the command started may take to end after it, such as a cluster that ends with its tests")
	only := flags.String("only", "", "names of the parts to run, separated by spaces; all if empty")
	if err := flags.Parse(args[1:]); err != nil {
		return err
	}
	if flags.NArg() < 2 {
		return errUsage
	}
	name, words := flags.Arg(0), flags.Args()[1:]
	switch args[0] {
	case "run":
		dir := filepath.Join("_output", "tests", name)
		if above := os.Getenv(envOut); above != "" { // a tier within a tier
			dir = filepath.Join(above, name)
		}
		return runTier(ctx, dir, *rest, *ending, words, out)
	case "parts":
		return runParts(ctx, name, strings.Fields(*only), *ending, words, out)
	}
	return errUsage
}
