// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"fmt"
	"strings"

	"github.com/spf13/cobra"
	authenticationv1 "k8s.io/api/authentication/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	typedauthentication "k8s.io/client-go/kubernetes/typed/authentication/v1"
)

func authCommand(api *server, term *terminal) *cobra.Command {
	cmd := &cobra.Command{Use: "auth", Short: "Who you are to the server"}
	whoami := &cobra.Command{Use: "whoami", Aliases: []string{"validate"}, Short: "Print the user and the groups that the server knows you by", Args: cobra.NoArgs}
	f := addOutput(whoami, asTable, asJSON, asYAML)
	whoami.RunE = func(cmd *cobra.Command, _ []string) error {
		config, err := api.config()
		if err != nil {
			return err
		}
		c, err := typedauthentication.NewForConfig(config)
		if err != nil {
			return fmt.Errorf("client: %w", err)
		}
		r, err := c.SelfSubjectReviews().Create(cmd.Context(), &authenticationv1.SelfSubjectReview{}, metav1.CreateOptions{})
		if err != nil {
			return err
		}
		u := &r.Status.UserInfo
		if *f != asTable {
			return term.write(u, *f)
		}
		return term.say("user   %s\ngroups %s", clean(u.Username), clean(strings.Join(u.Groups, ", ")))
	}
	cmd.AddCommand(whoami)
	return cmd
}
