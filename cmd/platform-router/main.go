// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

// Command platform-router serves the chat-completions and messages APIs of many installations on one address. The
// ServiceAccount token of a request selects the installation.
package main

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"syscall"

	"github.com/spf13/cobra"
	"k8s.io/component-base/cli"

	"github.com/platform-ai/platform/pkg/server/cors"
	"github.com/platform-ai/platform/pkg/server/router"
	"github.com/platform-ai/platform/pkg/version"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	context.AfterFunc(ctx, stop) // a second signal ends the program at once
	o := router.NewOptions()
	o.Origins = cors.Origins(os.Getenv)
	cmd := &cobra.Command{
		Use: "platform-router", Short: "Serve many installations' model APIs on one address", Version: version.Version(), Args: cobra.NoArgs,
		Long: "Serves /openai/v1 and /anthropic/v1 and forwards each request to the installation that serves the namespace of\n" +
			"the caller's ServiceAccount token. " + cors.EnvOrigins + " lists the origins whose pages may use it,\n" +
			"separated by commas; unset is any.",
		RunE: func(*cobra.Command, []string) error { return router.Run(ctx, *o) },
	}
	o.AddFlags(cmd.Flags())
	if err := cli.RunNoErrOutput(cmd); err != nil {
		fmt.Fprintln(os.Stderr, "platform-router:", err)
		os.Exit(1)
	}
}
