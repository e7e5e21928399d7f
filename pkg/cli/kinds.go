// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"context"

	"github.com/spf13/cobra"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	typed "github.com/platform-ai/platform/pkg/generated/clientset/versioned/typed/core/v1alpha1"
)

// kindCommands returns the commands for kinds that tasks are made of. They are written with kubectl apply.
func kindCommands(api *server, term *terminal) []*cobra.Command {
	remove := func(resource, word string, of func(typed.CoreV1alpha1Interface, string) remover) *cobra.Command {
		cmd := eachNamed(api, "delete NAME...", "Remove "+resource, resource, func(ctx context.Context, c typed.CoreV1alpha1Interface, namespace, name string) error {
			if err := of(c, namespace).Delete(ctx, name, metav1.DeleteOptions{}); err != nil {
				return err
			}
			return term.say("%s %s deleted", word, name)
		})
		cmd.Aliases = []string{"rm"}
		return cmd
	}
	kind := func(word, short string, of func(typed.CoreV1alpha1Interface, string) remover) *cobra.Command {
		resource := word + "s"
		cmd := &cobra.Command{Use: word, Aliases: []string{resource}, Short: short}
		list := listOf(api, term, resource, "List "+resource)
		if resource == "tools" {
			list = toolList(api, term)
		}
		cmd.AddCommand(list, getOf(api, term, "NAME", resource, "Show "+resource), remove(resource, word, of))
		return cmd
	}
	skill := kind("skill", "Instructions that agents share", func(c typed.CoreV1alpha1Interface, n string) remover { return c.Skills(n) })
	skill.AddCommand(skillFileCommands(api, term)...)
	pools := &cobra.Command{Use: "runtime-pool", Aliases: []string{"runtime-pools"}, Short: "Capacity for tasks with coding agents, which the controller makes"}
	pools.AddCommand(listOf(api, term, "runtimepools", "List runtime pools, with what of their capacity is in use"), getOf(api, term, "NAME", "runtimepools", "Show a runtime pool"))
	return []*cobra.Command{
		pools,
		kind("agent", "Agents that perform tasks: a model with instructions and tools", func(c typed.CoreV1alpha1Interface, n string) remover { return c.Agents(n) }),
		kind("provider", "Accounts at vendors of models", func(c typed.CoreV1alpha1Interface, n string) remover { return c.Providers(n) }),
		skill,
		kind("tool", "What agents may call besides the built-in tools", func(c typed.CoreV1alpha1Interface, n string) remover { return c.Tools(n) }),
	}
}

// toolList lists what tasks of the namespace can call. Built-in tools are no objects, so they are in tables only.
func toolList(api *server, term *terminal) *cobra.Command {
	var l listFlags
	var own bool
	cmd := &cobra.Command{
		Use: "list", Aliases: []string{"ls"}, Short: "List tools: the built-in ones and the Tools of the namespace", Args: cobra.NoArgs,
		Long: "List the built-in tools and the Tools of the namespace. Formats that print objects, --watch and --field-selector are about\n" +
			"Tools alone, because built-in tools are no objects.",
	}
	l.add(cmd)
	cmd.Flags().BoolVar(&own, "custom", false, "only Tools, with their types and addresses")
	f := addOutput(cmd, objectFormats...)
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		resource := "catalogtools"
		if own || !f.table() || l.follow || l.fields != "" {
			resource = "tools"
		}
		return printList(cmd.Context(), api, term, resource, &l, *f)
	}
	return cmd
}

// remover removes objects of a kind.
type remover interface {
	Delete(ctx context.Context, name string, o metav1.DeleteOptions) error
}
