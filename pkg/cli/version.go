// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"encoding/json"
	"fmt"

	"github.com/spf13/cobra"
	apiversion "k8s.io/apimachinery/pkg/version"

	"github.com/platform-ai/platform/pkg/version"
)

// versions is what platform version prints.
type versions struct {
	Client string `json:"client"`
	Server string `json:"server,omitempty"`
}

func versionCommand(api *server, term *terminal) *cobra.Command {
	var local bool
	cmd := &cobra.Command{Use: "version", Short: "Print the versions of this program and of the server", Args: cobra.NoArgs}
	cmd.Flags().BoolVar(&local, "client", false, "only that of this program; no server is contacted")
	f := addOutput(cmd, asTable, asJSON, asYAML)
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		v := versions{Client: version.Version()}
		if !local {
			c, _, err := api.client()
			if err != nil {
				return err
			}
			raw, err := c.RESTClient().Get().AbsPath("/version").Do(cmd.Context()).Raw()
			if err != nil {
				return err
			}
			var info apiversion.Info
			if err := json.Unmarshal(raw, &info); err != nil {
				return fmt.Errorf("answer of the server: %w", err)
			}
			v.Server = info.GitVersion
		}
		if *f != asTable {
			return term.write(v, *f)
		}
		if err := term.say("client %s", v.Client); err != nil || v.Server == "" {
			return err
		}
		return term.say("server %s", clean(v.Server))
	}
	return cmd
}
