// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"context"
	"fmt"
	"strings"

	"github.com/spf13/cobra"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/platform-ai/platform/pkg/apis/core/v1alpha1"
	typed "github.com/platform-ai/platform/pkg/generated/clientset/versioned/typed/core/v1alpha1"
)

func memoryCommand(api *server, term *terminal) *cobra.Command {
	cmd := &cobra.Command{Use: "memory", Aliases: []string{"memories"}, Short: "What tasks recall"}
	change := func(verb, short string, do func(context.Context, typed.MemoryInterface, string) error, done string) *cobra.Command {
		return eachNamed(api, verb+" MEMORY...", short, "memories", func(ctx context.Context, c typed.CoreV1alpha1Interface, namespace, name string) error {
			if err := do(ctx, c.Memories(namespace), name); err != nil {
				return err
			}
			return term.say("memory %s %s", name, done)
		})
	}
	body := &v1alpha1.MemoryChange{}
	cmd.AddCommand(
		proposalCommand(api, term), // also a command of its own
		memoryList(api, term), getOf(api, term, "MEMORY", "memories", "Show a memory"), memorySearch(api, term),
		change("disable", "Keep memories from being recalled", func(ctx context.Context, c typed.MemoryInterface, name string) error {
			_, err := c.Disable(ctx, name, body, metav1.CreateOptions{})
			return err
		}, "disabled"),
		change("enable", "Let memories be recalled again", func(ctx context.Context, c typed.MemoryInterface, name string) error {
			_, err := c.Enable(ctx, name, body, metav1.CreateOptions{})
			return err
		}, "enabled"),
		change("discard", "Hide memories; restore brings them back", func(ctx context.Context, c typed.MemoryInterface, name string) error {
			_, err := c.Discard(ctx, name, body, metav1.CreateOptions{})
			return err
		}, "discarded"),
		change("restore", "Bring discarded memories back", func(ctx context.Context, c typed.MemoryInterface, name string) error {
			_, err := c.Restore(ctx, name, body, metav1.CreateOptions{})
			return err
		}, "restored"),
		change("delete", "Remove memories for good", func(ctx context.Context, c typed.MemoryInterface, name string) error {
			return c.Delete(ctx, name, metav1.DeleteOptions{})
		}, "deleted"),
		memoryForget(api, term),
	)
	return cmd
}

func memorySearch(api *server, term *terminal) *cobra.Command {
	var s v1alpha1.MemorySearchSpec
	cmd := &cobra.Command{Use: "search [WORD...]", Short: "Find memories by their text, the best first", Args: cobra.ArbitraryArgs}
	searchedBy(cmd.Flags(), &s)
	cmd.Flags().Int32Var(&s.Limit, "limit", 0, "at most this many; 0 is 50")
	f := addOutput(cmd, asTable, asJSON, asYAML)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		c, namespace, err := api.client()
		if err != nil {
			return err
		}
		s.Query = strings.Join(args, " ")
		out, err := c.MemorySearches(namespace).Create(cmd.Context(), &v1alpha1.MemorySearch{Spec: s}, metav1.CreateOptions{})
		if err != nil {
			return err
		}
		if *f != asTable {
			return term.objectPrinter(*f, false).PrintObj(out, term.Out)
		}
		for i := range out.Status.Items {
			m := &out.Status.Items[i].Memory
			text := strings.Join(strings.Fields(clean(m.Spec.Content)), " ")
			if err := term.say("%s %s", term.paint(bold, m.Name), text); err != nil {
				return err
			}
		}
		return nil
	}
	return cmd
}

// memoryForget removes what a task brought: its memories for good, and its proposals.
func memoryForget(api *server, term *terminal) *cobra.Command {
	var task string
	cmd := &cobra.Command{
		Use: "forget --task TASK", Short: "Remove all memories and proposals that came from a task", Args: cobra.NoArgs,
		Long: "Remove, for good, all proposals of a task's runs and all memories that were made of them.",
	}
	cmd.Flags().StringVar(&task, "task", "", "the task")
	_ = cmd.MarkFlagRequired("task") // the flag exists
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		c, namespace, err := api.client()
		if err != nil {
			return err
		}
		// Proposals come first: one that is left could be applied again.
		from := metav1.ListOptions{FieldSelector: "status.origin.taskName=" + task}
		if err := c.MemoryProposals(namespace).DeleteCollection(cmd.Context(), metav1.DeleteOptions{}, from); err != nil {
			return fmt.Errorf("proposals: %w", err)
		}
		if err := c.Memories(namespace).DeleteCollection(cmd.Context(), metav1.DeleteOptions{}, from); err != nil {
			return fmt.Errorf("memories: %w", err)
		}
		return term.say("what came from task %s is forgotten", task)
	}
	return cmd
}

func proposalCommand(api *server, term *terminal) *cobra.Command {
	cmd := &cobra.Command{Use: "proposal", Aliases: []string{"proposals"}, Short: "What agents propose to remember"}
	cmd.AddCommand(proposalList(api, term), getOf(api, term, "PROPOSAL", "memoryproposals", "Show a proposal"), proposalReview(api, term), proposalApply(api, term),
		eachNamed(api, "archive PROPOSAL...", "Close proposals without applying them", "memoryproposals", func(ctx context.Context, c typed.CoreV1alpha1Interface, namespace, name string) error {
			if _, err := c.MemoryProposals(namespace).Archive(ctx, name, &v1alpha1.MemoryChange{}, metav1.CreateOptions{}); err != nil {
				return err
			}
			return term.say("proposal %s archived", name)
		}))
	return cmd
}

func proposalReview(api *server, term *terminal) *cobra.Command {
	var accept, reject bool
	review := &v1alpha1.MemoryProposalReview{}
	cmd := &cobra.Command{Use: "review PROPOSAL (--accept | --reject)", Short: "Accept or reject a proposal", Args: cobra.ExactArgs(1), ValidArgsFunction: api.names("memoryproposals")}
	flags := cmd.Flags()
	flags.BoolVar(&accept, "accept", false, "accept it; it can be applied then")
	flags.BoolVar(&reject, "reject", false, "reject it")
	flags.StringVar(&review.Spec.ReviewNote, "note", "", "comment on the decision")
	flags.StringVar(&review.Spec.Reviewer, "reviewer", "", "name to record instead of your user name")
	cmd.MarkFlagsMutuallyExclusive("accept", "reject")
	cmd.MarkFlagsOneRequired("accept", "reject")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		c, namespace, err := api.client()
		if err != nil {
			return err
		}
		if review.Spec.Status = v1alpha1.ProposalRejected; accept {
			review.Spec.Status = v1alpha1.ProposalAccepted
		}
		p, err := c.MemoryProposals(namespace).Review(cmd.Context(), args[0], review, metav1.CreateOptions{})
		if err != nil {
			return err
		}
		return term.say("proposal %s %s", p.Name, p.Status.State)
	}
	return cmd
}

func proposalApply(api *server, term *terminal) *cobra.Command {
	apply := &v1alpha1.MemoryProposalApplication{}
	cmd := &cobra.Command{Use: "apply PROPOSAL", Short: "Make the memory of an accepted proposal", Args: cobra.ExactArgs(1), ValidArgsFunction: api.names("memoryproposals")}
	cmd.Flags().StringVar(&apply.Spec.AppliedBy, "applied-by", "", "name to record instead of your user name")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		c, namespace, err := api.client()
		if err != nil {
			return err
		}
		m, err := c.MemoryProposals(namespace).ApplyMemory(cmd.Context(), args[0], apply, metav1.CreateOptions{})
		if err != nil {
			return err
		}
		return term.say("memory %s made of proposal %s", m.Name, args[0])
	}
	return cmd
}
