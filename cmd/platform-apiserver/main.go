// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

// Command platform-apiserver serves the platform's API group in a cluster, as an aggregated API server of
// kube-apiserver. It stores its data in a directory of its own.
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
	"github.com/platform-ai/platform/pkg/server/aggregated"
	"github.com/platform-ai/platform/pkg/server/cors"
	"github.com/platform-ai/platform/pkg/sparse"
	"github.com/platform-ai/platform/pkg/version"
	"github.com/platform-ai/platform/pkg/worker/sandbox"
)

func main() {
	stderr := os.Stderr
	lines := sparse.New(clock.RealClock{})
	lines.HandleErrors()
	o := aggregated.NewOptions()
	o.Out, o.Metrics = os.Stdout, legacyregistry.Registerer()
	o.CORSOrigins = cors.Origins(os.Getenv)
	o.SearchKey = os.Getenv("SEARCH_API_KEY")
	o.ReviewMarkers = server.ReviewMarkersOf(os.Getenv)
	cmd := &cobra.Command{
		Use: "platform-apiserver", Short: "Serve the platform's API in a cluster, behind kube-apiserver", Version: version.Version(), Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) (err error) {
			if err := server.SetUpLog(cmd.Context(), false, lines); err != nil {
				return err
			}
			if err := sandbox.Seal(); err != nil {
				return err
			}
			if o.Webhook, err = server.WebhookOf(os.Environ()); err != nil {
				return err
			}
			return aggregated.Run(genericapiserver.SetupSignalContext(), *o)
		},
	}
	o.AddFlags(cmd.Flags())
	cmd.AddCommand(server.NewRestoreCommand("platform-apiserver"))
	cmd.CompletionOptions.DisableDefaultCmd = true
	if err := cli.RunNoErrOutput(cmd); err != nil {
		_, _ = fmt.Fprintln(stderr, "platform-apiserver:", err)
		os.Exit(1)
	}
}
