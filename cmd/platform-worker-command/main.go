// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

// Command platform-worker-command runs one attempt of one task of type container. It does what platform-worker does with
// such tasks, and starts in half the processor time, because it links neither tools nor vendors of models. One program that
// initializes these only when they are needed was considered: the packages that take most time initialize themselves and are
// not ours. The executor of processes uses this program if it is next to the server, unless --worker-binary names another one.
package main

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"syscall"

	"k8s.io/klog/v2"

	"github.com/platform-ai/platform/pkg/apis/core/v1alpha1"
	"github.com/platform-ai/platform/pkg/worker"
	"github.com/platform-ai/platform/pkg/worker/command"
	"github.com/platform-ai/platform/pkg/worker/runner/container"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	code, err := command.Run(ctx, "platform-worker-command", os.Args[1:], worker.Runners{v1alpha1.TaskTypeContainer: container.Runner})
	if err != nil {
		fmt.Fprintln(os.Stderr, "platform-worker-command:", err)
	}
	stop()
	klog.Flush()
	os.Exit(code)
}
