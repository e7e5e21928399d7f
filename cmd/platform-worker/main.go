// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

// Command platform-worker runs one attempt of one task. It is started by an
// executor, which tells it everything by environment and standard input; see
// package runspec. People do not start it.
package main

import (
	"context"
	"os"
	"os/signal"
	"syscall"

	"k8s.io/klog/v2"

	"github.com/platform-ai/platform/pkg/worker"
)

func main() {
	os.Exit(run())
}

func run() int {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	defer klog.Flush()
	return worker.Main(ctx, os.Getenv, os.Stdin)
}
