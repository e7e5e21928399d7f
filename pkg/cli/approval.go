// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"context"
	"strings"

	"github.com/spf13/cobra"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/platform-ai/platform/pkg/apis/core/v1alpha1"
	"github.com/platform-ai/platform/pkg/approval"
	typed "github.com/platform-ai/platform/pkg/generated/clientset/versioned/typed/core/v1alpha1"
)

// states returns the valid values of approval list --state.
func states() []string {
	out := []string{}
	for _, s := range approval.States() {
		out = append(out, string(s))
	}
	return append(out, "all")
}

func approvalCommand(api *server, term *terminal) *cobra.Command {
	cmd := &cobra.Command{Use: "approval", Aliases: []string{"approvals"}, Short: "What agents ask for, in all tasks"}
	var l listFlags
	var state string
	list := &cobra.Command{Use: "list", Aliases: []string{"ls"}, Short: "List approvals; by default those that wait for a decision", Args: cobra.NoArgs}
	l.add(list)
	list.Flags().StringVar(&state, "state", string(v1alpha1.ApprovalPending), "only in this state; all for every state")
	offer(list, "state", cobra.FixedCompletions(states(), cobra.ShellCompDirectiveNoFileComp))
	f := addOutput(list, objectFormats...)
	list.RunE = func(cmd *cobra.Command, _ []string) error {
		if err := oneOf("--state", state, states()...); err != nil {
			return err
		}
		if state != "all" {
			l.fields = strings.Trim(l.fields+",status.state="+state, ",")
		}
		return printList(cmd.Context(), api, term, "approvals", &l, *f)
	}
	cmd.AddCommand(list, approvalGet(api, term), approvalDecide(api, term, approval.Approve, "Let agents take the actions that they ask for"),
		approvalDecide(api, term, approval.Decline, "Refuse the actions that agents ask for", "deny", "reject"))
	return cmd
}

func approvalGet(api *server, term *terminal) *cobra.Command {
	cmd := &cobra.Command{
		Use: "get APPROVAL...", Short: "Show approvals", Args: cobra.MinimumNArgs(1), ValidArgsFunction: api.namesOf("approvals"),
		Long: "Show approvals. The beginning of an id is enough if no other id of the namespace begins with it.",
	}
	f := addOutput(cmd, objectFormats...)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		c, namespace, err := api.client()
		if err != nil {
			return err
		}
		names := make([]string, len(args))
		for i, prefix := range args {
			found, err := pickAny(cmd.Context(), c, namespace, prefix)
			if err != nil {
				return err
			}
			names[i] = found.Name
		}
		return printNamed(cmd.Context(), api, term, "approvals", names, *f)
	}
	return cmd
}

func approvalDecide(api *server, term *terminal, word, short string, aliases ...string) *cobra.Command {
	var d decideFlags
	var f *format
	cmd := eachNamed(api, word+" APPROVAL...", short, "approvals", func(ctx context.Context, c typed.CoreV1alpha1Interface, namespace, prefix string) error {
		asked, err := pickAny(ctx, c, namespace, prefix)
		if err != nil {
			return err
		}
		return decideOn(ctx, term, c, asked, word, d, *f)
	})
	cmd.Aliases = aliases
	cmd.Long = short + ".\n\nThe beginning of an id is enough if no other id of the namespace begins with it." + aboutDecisions
	d.add(cmd)
	f = addOutput(cmd, asTable, asJSON, asYAML)
	return cmd
}

func taskApprovals(api *server, term *terminal) *cobra.Command {
	var follow bool
	cmd := &cobra.Command{Use: "approvals TASK", Short: "What a task asked for, and what was decided", Args: cobra.ExactArgs(1), ValidArgsFunction: api.names("tasks")}
	cmd.Flags().BoolVarP(&follow, "watch", "w", false, "go on with every change")
	f := addOutput(cmd, objectFormats...)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		c, namespace, err := api.client()
		if err != nil {
			return err
		}
		if _, err := c.Tasks(namespace).Get(cmd.Context(), args[0], metav1.GetOptions{}); err != nil {
			return err // an unknown task has no approvals, but an empty list would mislead
		}
		l := listFlags{fields: "spec.taskName=" + args[0], follow: follow}
		return printList(cmd.Context(), api, term, "approvals", &l, *f)
	}
	return cmd
}
