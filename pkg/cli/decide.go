// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/platform-ai/platform/pkg/apis/core/v1alpha1"
	"github.com/platform-ai/platform/pkg/approval"
	typed "github.com/platform-ai/platform/pkg/generated/clientset/versioned/typed/core/v1alpha1"
)

// shortestPrefix is the minimum length of a prefix that identifies an approval.
const shortestPrefix = 4

func (a *app) taskDecide(word, short string, aliases ...string) *cobra.Command {
	var reason string
	var yes bool
	cmd := &cobra.Command{
		Use: word + " TASK [APPROVAL]", Aliases: aliases, Short: short, Args: cobra.RangeArgs(1, 2), ValidArgsFunction: a.names("tasks"),
		Long: short + ".\n\nAPPROVAL is the id, or its beginning. Where a single approval of the task is pending it can be left out.\n" +
			"What would run is printed first, and asked about on a terminal. The decision is about exactly that call: the id\n" +
			"is made of the task, the tool and the digest of the arguments.",
	}
	cmd.Flags().StringVar(&reason, "reason", "", "why, for who reads the events and for the agent")
	cmd.Flags().BoolVarP(&yes, "yes", "y", false, "do not ask on a terminal")
	f := addOutput(cmd, asTable, asJSON, asYAML)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		c, namespace, err := a.client()
		if err != nil {
			return err
		}
		asked, err := pick(cmd.Context(), c, namespace, append(args, "")[:2])
		if err != nil {
			return err
		}
		out := a.Out
		if *f != asTable {
			out = a.Err // what is printed to Out is the answer
		}
		if err := a.showRequest(out, asked); err != nil {
			return err
		}
		if a.Ask && !yes && asked.Status.State == v1alpha1.ApprovalPending {
			if err := a.confirm(cmd.Context(), word); err != nil {
				return err
			}
		}
		d := &v1alpha1.ApprovalDecision{Spec: v1alpha1.ApprovalDecisionSpec{Decision: word, Reason: reason, TaskName: args[0]}}
		done, err := c.Approvals(namespace).Decide(cmd.Context(), asked.Name, d, metav1.CreateOptions{})
		if err != nil {
			return err
		}
		if *f != asTable {
			return a.write(done, *f)
		}
		return a.say("%s by %s", done.Status.State, done.Status.DecisionActor)
	}
	return cmd
}

// showRequest prints the call that would run. It refuses an approval whose ID does not match this call.
func (a *app) showRequest(out io.Writer, asked *v1alpha1.Approval) error {
	s := &asked.Spec
	if err := approval.Verify(asked); err != nil {
		return fmt.Errorf("%w; no decision was made", err)
	}
	var b strings.Builder
	fmt.Fprintf(&b, "%s\n", a.paint(bold, fmt.Sprintf("task %s asks to call %s", s.TaskName, approval.Visible(s.TargetTool))))
	line := func(name, text string) {
		if text != "" {
			fmt.Fprintf(&b, "  %-10s %s\n", name, approval.Visible(text))
		}
	}
	line("action", s.Action)
	line("risk", s.RiskSummary)
	line("creator", s.RequestedBy)
	if s.ExpiresAt != nil {
		line("expires", s.ExpiresAt.Local().Format("2006-01-02 15:04:05"))
	}
	line("approval", asked.Name)
	line("digest", "sha256:"+s.TargetArgsDigest)
	arguments := approval.Arguments(s, "  ")
	switch {
	case arguments == "":
		line("arguments", "not shown by who asked; only their digest is known")
	case approval.Exact(s):
		line("arguments", "exactly these")
	default:
		line("arguments", "not all of them are shown: secrets are replaced, long texts are cut; the digest covers them whole")
	}
	if arguments != "" {
		fmt.Fprintf(&b, "    %s\n", strings.ReplaceAll(arguments, "\n", "\n    "))
	}
	_, err := io.WriteString(out, b.String())
	return err
}

// errNotConfirmed means that the user did not confirm.
var errNotConfirmed = errors.New("no decision was made")

// confirm asks the user on the terminal. Any answer but yes means no.
func (a *app) confirm(ctx context.Context, word string) error {
	if _, err := fmt.Fprintf(a.Err, "%s this call? [y/N] ", word); err != nil {
		return err
	}
	answer := make(chan string, 1)
	go func() {
		line, err := bufio.NewReader(a.In).ReadString('\n')
		if err != nil && line == "" {
			note(a.Err, "") // ends the prompt's line
		}
		answer <- strings.ToLower(strings.TrimSpace(line))
	}()
	select {
	case <-ctx.Done():
		return ctx.Err()
	case said := <-answer:
		if said == "y" || said == "yes" {
			return nil
		}
		return errNotConfirmed
	}
}

// pick finds the approval of a task that args (the task and a prefix) select. An empty prefix selects the only
// pending one.
func pick(ctx context.Context, c typed.CoreV1alpha1Interface, namespace string, args []string) (*v1alpha1.Approval, error) {
	task, prefix := args[0], args[1]
	if prefix != "" && len(prefix) < shortestPrefix {
		return nil, fmt.Errorf("approval %q: give at least %d characters of the id", prefix, shortestPrefix)
	}
	list, err := c.Approvals(namespace).List(ctx, metav1.ListOptions{FieldSelector: "spec.taskName=" + task})
	if err != nil {
		return nil, err
	}
	var found []*v1alpha1.Approval
	var names []string
	for i := range list.Items {
		p := &list.Items[i]
		if prefix != "" && strings.HasPrefix(p.Name, prefix) || prefix == "" && p.Status.State == v1alpha1.ApprovalPending {
			found, names = append(found, p), append(names, p.Name)
		}
	}
	switch {
	case len(found) == 1:
		return found[0], nil
	case len(found) > 1:
		return nil, fmt.Errorf("task %s has %d such approvals; name one: %s", task, len(found), strings.Join(names, ", "))
	case prefix != "":
		return nil, fmt.Errorf("task %s has no approval %s", task, prefix)
	}
	if _, err := c.Tasks(namespace).Get(ctx, task, metav1.GetOptions{}); err != nil {
		return nil, err // the task does not exist, or the caller may not see it
	}
	return nil, fmt.Errorf("task %s waits for no approval", task)
}
