// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/platform-ai/platform/pkg/apis/core/v1alpha1"
)

func taskPlan(api *server, term *terminal) *cobra.Command {
	cmd := &cobra.Command{
		Use: "plan TASK", Short: "Print the plan that the agent of a task keeps", Args: cobra.ExactArgs(1), ValidArgsFunction: api.names("tasks"),
		Long: "Print the plan that the agent of a task keeps while it works. A task that has ended has none; `platform task events TASK --type PlanUpdated` prints all its versions.",
	}
	f := addOutput(cmd, "text", asJSON, asYAML)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		c, namespace, err := api.client()
		if err != nil {
			return err
		}
		p, err := c.Tasks(namespace).GetPlan(cmd.Context(), args[0], metav1.GetOptions{})
		if err != nil {
			return err
		}
		if *f == asJSON || *f == asYAML {
			p.SetGroupVersionKind(v1alpha1.SchemeGroupVersion.WithKind("TaskPlan"))
			return term.write(p, *f)
		}
		return printPlan(term.Out, p)
	}
	return cmd
}

// printPlan prints a line about the plan, and the plan. Agents wrote both, so control characters are removed.
func printPlan(out io.Writer, p *v1alpha1.TaskPlan) error {
	about := []string{fmt.Sprintf("iteration %d", p.Iteration)}
	if p.ProgressPct != nil {
		about = append(about, fmt.Sprintf("%d%% done", *p.ProgressPct))
	}
	if p.GoalComplete {
		about = append(about, "goal complete")
	}
	if p.Summary != "" {
		about = append(about, clean(p.Summary))
	}
	lines := strings.Split(strings.TrimRight(p.PlanDocument, "\n"), "\n")
	for i, line := range lines {
		lines[i] = clean(line)
	}
	_, err := fmt.Fprintf(out, "%s\n\n%s\n", strings.Join(about, ", "), strings.Join(lines, "\n"))
	return err
}
