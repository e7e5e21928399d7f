// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

// Command platform-controller runs the platform's controllers in a cluster: it drives tasks through their phases and
// runs them as Jobs.
package main

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"syscall"

	"github.com/spf13/cobra"
	"k8s.io/component-base/cli"
	"k8s.io/utils/clock"

	"github.com/platform-ai/platform/pkg/controller"
	"github.com/platform-ai/platform/pkg/sparse"
	"github.com/platform-ai/platform/pkg/version"
	"github.com/platform-ai/platform/pkg/worker/sandbox"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	o := controller.NewClusterOptions()
	cmd := &cobra.Command{
		Use: "platform-controller", Short: "Run the platform's controllers in a cluster", Version: version.Version(), Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) (err error) {
			if err := sandbox.Seal(); err != nil {
				return err
			}
			if o.MergeGate, err = controller.MergeGateOf(os.Environ()); err != nil {
				return err
			}
			sparse.New(clock.RealClock{}).HandleErrors()
			return controller.RunCluster(cmd.Context(), *o)
		},
	}
	cmd.SetContext(ctx)
	o.AddFlags(cmd.Flags())
	if err := cli.RunNoErrOutput(cmd); err != nil && ctx.Err() == nil {
		fmt.Fprintln(os.Stderr, "platform-controller:", err)
		os.Exit(1) //nolint:gocritic // nothing is left to stop
	}
}
