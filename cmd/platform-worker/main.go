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

	"k8s.io/klog/v2"

	"github.com/platform-ai/platform/pkg/worker/command"
	"github.com/platform-ai/platform/pkg/worker/runners"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	code, err := command.Run(ctx, "platform-worker", os.Args[1:], runners.All())
	if err != nil {
		fmt.Fprintln(os.Stderr, "platform-worker:", err)
	}
	stop()
	klog.Flush()
	os.Exit(code)
}
