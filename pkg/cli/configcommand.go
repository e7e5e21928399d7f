// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"errors"

	"github.com/spf13/cobra"
)

// errKubeconfig says what takes the place of a configuration file and a login.
var errKubeconfig = errors.New("platform has no configuration of its own and no login: it uses the kubeconfig. " +
	"Set the server, the namespace and the token with kubectl config (set-cluster, set-context --current --namespace, set-credentials), " +
	"or give --server, --namespace and --token; kubectl config view shows them, and platform auth whoami tries them")

// configCommand answers those who look for the commands that configure other clients.
func configCommand() *cobra.Command {
	return &cobra.Command{
		Use: "config", Aliases: []string{"login"}, Short: "Says how to choose a server and a user: with the kubeconfig", Args: cobra.ArbitraryArgs,
		FParseErrWhitelist: cobra.FParseErrWhitelist{UnknownFlags: true},
		RunE:               func(*cobra.Command, []string) error { return errKubeconfig },
	}
}
