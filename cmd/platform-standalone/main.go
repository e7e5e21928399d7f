// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

// Command platform-standalone runs the whole platform on one machine: API server, store and controllers in this
// process, tasks in child processes. All it needs is a directory.
package main

import (
	"fmt"
	"os"

	"github.com/spf13/cobra"
	genericapiserver "k8s.io/apiserver/pkg/server"
	"k8s.io/component-base/cli"
	"k8s.io/component-base/metrics/legacyregistry"
	"k8s.io/utils/clock"

	"github.com/platform-ai/platform/pkg/server"
	"github.com/platform-ai/platform/pkg/server/cors"
	"github.com/platform-ai/platform/pkg/server/standalone"
	"github.com/platform-ai/platform/pkg/sparse"
	"github.com/platform-ai/platform/pkg/version"
	"github.com/platform-ai/platform/pkg/worker/sandbox"
)

func main() {
	stderr := os.Stderr
	lines := sparse.New(clock.RealClock{})
	lines.HandleErrors()
	o := standalone.NewOptions()
	o.Out, o.Metrics = os.Stdout, legacyregistry.Registerer()
	cmd := &cobra.Command{
		Use: "platform-standalone", Short: "Run the platform on this machine", Version: version.Version(), Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := server.SetUpLog(cmd.Context(), !cmd.Flags().Changed("v"), lines); err != nil {
				return err
			}
			if err := sandbox.Seal(); err != nil {
				return err
			}
			if err := o.SetEnvironment(os.Environ()); err != nil {
				return err
			}
			return standalone.Run(genericapiserver.SetupSignalContext(), *o)
		},
	}
	o.CORSOrigins = cors.Origins(os.Getenv)
	o.SearchKey = os.Getenv("SEARCH_API_KEY")
	o.ReviewMarkers = server.ReviewMarkersOf(os.Getenv)
	o.AddFlags(cmd.Flags())
	cmd.AddCommand(server.NewRestoreCommand("platform-standalone"), standalone.NewRunsCommand())
	cmd.CompletionOptions.DisableDefaultCmd = true
	if err := cli.RunNoErrOutput(cmd); err != nil {
		_, _ = fmt.Fprintln(stderr, "platform-standalone:", err)
		os.Exit(1)
	}
}
