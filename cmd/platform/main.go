// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

// Command platform is the command-line client for people. Under the name kubectl-platform it is a kubectl plugin.
package main

import (
	"context"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"

	"golang.org/x/term"

	"github.com/platform-ai/platform/pkg/cli"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	s := cli.Streams{In: os.Stdin, Out: os.Stdout, Err: os.Stderr, Become: syscall.Exec}
	s.Ask = term.IsTerminal(int(os.Stdin.Fd())) && term.IsTerminal(int(os.Stderr.Fd()))
	if fd := int(os.Stdout.Fd()); term.IsTerminal(fd) {
		s.Color = os.Getenv("NO_COLOR") == "" && os.Getenv("TERM") != "dumb"
		if s.Width, s.Height, _ = term.GetSize(fd); s.Width == 0 {
			s.Width = 80 // unknown
		}
	}
	code := cli.Main(ctx, filepath.Base(os.Args[0]), os.Args[1:], s)
	stop()
	os.Exit(code)
}
