// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package cli

import "github.com/spf13/cobra"

// runCommand returns the command for whoever only wants an answer: it creates an AI task, waits for its end and prints its result.
func runCommand(api *server, term *terminal) *cobra.Command {
	var n newTask
	var verbose bool
	cmd := &cobra.Command{
		Use: "run PROMPT", Short: "Let a model work on a prompt, and print the result", Args: cobra.ExactArgs(1),
		Long: "Let a model work on a prompt, and print the result, alone on standard output. The task stays: its name is on standard error.\n" +
			"platform task create has all that a task can say. The exit code reports the outcome.\n\n" + exitCodes,
		Example: `  platform run "Find the largest prime below 1000" --agent coder
  platform run "And the one before it?" --session primes --verbose`,
	}
	f := cmd.Flags()
	f.StringVar(&n.agent, "agent", "", "Agent that does the work")
	f.StringVar(&n.provider, "provider", "", "Provider of the model")
	f.StringVar(&n.model, "model", "", "model that is asked")
	f.StringVar(&n.session, "session", "", "session that the task continues; made when it does not exist")
	f.BoolVarP(&verbose, "verbose", "v", false, "print the events of the task as they arrive, too")
	api.offerNames(cmd, "agents", "agent")
	api.offerNames(cmd, "providers", "provider")
	api.offerNames(cmd, "sessions", "session")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		ctx := cmd.Context()
		t, err := describedTask(term, cmd, &n, args)
		if err != nil {
			return err
		}
		made, c, err := submitTask(ctx, api, term, t)
		if err != nil {
			return err
		}
		note(term.Err, "task "+made.Name+" created")
		if verbose {
			return followToResult(ctx, api, term, c, made.Name)
		}
		if err := awaitTask(ctx, api, term, made.Name); err != nil {
			return err
		}
		return printResultOf(ctx, term, c, made.Name, "")
	}
	return cmd
}
