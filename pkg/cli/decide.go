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
	"time"
	"unicode/utf8"

	"github.com/spf13/cobra"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/platform-ai/platform/pkg/apis/core/v1alpha1"
	"github.com/platform-ai/platform/pkg/approval"
	typed "github.com/platform-ai/platform/pkg/generated/clientset/versioned/typed/core/v1alpha1"
	"github.com/platform-ai/platform/pkg/visible"
)

// decideFlags are the flags of commands that decide on approvals.
type decideFlags struct {
	reason string
	yes    bool
}

func (d *decideFlags) add(cmd *cobra.Command) {
	cmd.Flags().StringVar(&d.reason, "reason", "", "why, for readers of the events and for the agent")
	cmd.Flags().BoolVarP(&d.yes, "yes", "y", false, "do not ask; without a terminal an approval needs it")
}

// aboutDecisions ends the help of commands that decide.
const aboutDecisions = "\nWhat would run is printed first; on a terminal you are asked to confirm it. Without a terminal an approval needs --yes. The\n" +
	"decision is about exactly that call: the id is made of the task, the tool and the digest of the arguments."

func taskDecide(api *server, term *terminal, word, short string, aliases ...string) *cobra.Command {
	var d decideFlags
	var wait time.Duration
	cmd := &cobra.Command{
		Use: word + " TASK [APPROVAL]", Aliases: aliases, Short: short, Args: cobra.RangeArgs(1, 2), ValidArgsFunction: api.names("tasks"),
		Long: short + ".\n\nAPPROVAL is the id, or its beginning. If only one approval of the task is pending, it can be left out. If the task has\n" +
			"none, TASK may be the root of a tree, and APPROVAL one of any task below it." + aboutDecisions,
	}
	d.add(cmd)
	cmd.Flags().DurationVar(&wait, "wait", 0, "wait this long until the task, or one below it, asks for something")
	f := addOutput(cmd, asTable, asJSON, asYAML)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		c, namespace, err := api.client()
		if err != nil {
			return err
		}
		until := term.clock.Now().Add(wait)
		asked, err := pick(cmd.Context(), c, namespace, append(args, "")[:2])
		for errors.Is(err, errNothingAsked) && term.clock.Now().Before(until) {
			select {
			case <-term.clock.After(time.Second):
			case <-cmd.Context().Done():
				return cmd.Context().Err()
			}
			asked, err = pick(cmd.Context(), c, namespace, append(args, "")[:2])
		}
		if err != nil {
			return err
		}
		return decideOn(cmd.Context(), term, c, asked, word, d, *f)
	}
	return cmd
}

// decideOn shows an approval, asks the user on a terminal, and decides.
func decideOn(ctx context.Context, term *terminal, c typed.CoreV1alpha1Interface, asked *v1alpha1.Approval, word string, flags decideFlags, f format) error {
	out := term.Out
	if f != asTable {
		out = term.Err // what is printed to Out is the answer
	}
	confirm := !flags.yes && asked.Status.State == v1alpha1.ApprovalPending
	if err := showRequest(ctx, term, out, asked, confirm && term.Ask); err != nil {
		return err
	}
	if confirm {
		if err := term.confirm(ctx, word); err != nil {
			return err
		}
	}
	d := &v1alpha1.ApprovalDecision{Spec: v1alpha1.ApprovalDecisionSpec{Decision: word, Reason: flags.reason, TaskName: asked.Spec.TaskName}}
	done, err := c.Approvals(asked.Namespace).Decide(ctx, asked.Name, d, metav1.CreateOptions{})
	if err != nil {
		return err
	}
	if f != asTable {
		return term.write(done, f)
	}
	return term.say("%s by %s", done.Status.State, done.Status.DecisionActor)
}

// showRequest prints the call that would run, screen by screen if it is paged. It refuses an approval whose ID does not match
// this call.
func showRequest(ctx context.Context, term *terminal, out io.Writer, asked *v1alpha1.Approval, paged bool) error {
	s := &asked.Spec
	if err := approval.Verify(asked); err != nil {
		return fmt.Errorf("%w; no decision was made", err)
	}
	var b strings.Builder
	fmt.Fprintf(&b, "%s\n", term.paint(bold, fmt.Sprintf("task %s asks to call %s", s.TaskName, visible.Exact(s.TargetTool))))
	line := func(name, text string) {
		if text != "" {
			fmt.Fprintf(&b, "  %-10s %s\n", name, visible.Exact(text))
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
	arguments := approval.Lines(s)
	switch {
	case len(arguments) == 0:
		line("arguments", "the requester does not show them; only their digest is known")
	case approval.Exact(s):
		line("arguments", "exactly these")
	default:
		line("arguments", "not all of them are shown: secrets are replaced, long texts are cut; the digest covers them whole")
	}
	for _, line := range arguments {
		fmt.Fprintf(&b, "    %s\n", line)
	}
	if paged {
		return term.page(ctx, out, b.String())
	}
	_, err := io.WriteString(out, b.String())
	return err
}

// page prints a text of which nothing may scroll out of view before it was read.
func (term *terminal) page(ctx context.Context, out io.Writer, text string) error {
	lines := strings.SplitAfter(strings.TrimSuffix(text, "\n"), "\n")
	lines[len(lines)-1] += "\n"
	for room := term.Height - 2; ; room = term.Height - 2 {
		n := 0
		for ; n < len(lines); n++ {
			if room -= 1 + max(0, utf8.RuneCountInString(lines[n])-2)/max(1, term.Width); room < 0 && n > 0 && term.Height > 0 {
				break
			}
		}
		if _, err := io.WriteString(out, strings.Join(lines[:n], "")); err != nil || n == len(lines) {
			return err
		}
		lines = lines[n:]
		said, err := term.ask(ctx, fmt.Sprintf("-- %s, %d not blank: Enter goes on, q ends --", many(len(lines), "more line"), len(lines)-approval.Blank(lines)))
		if err != nil {
			return err
		}
		if said != "" {
			return errNotConfirmed
		}
	}
}

// errNotConfirmed means that the user did not confirm.
var errNotConfirmed = errors.New("no decision was made")

// confirm asks the user on the terminal. Any answer but yes means no. A standard input that is no terminal confirms nothing,
// whatever it holds, because it may be the rest of somebody's script; nobody needs to confirm that a call is declined.
func (term *terminal) confirm(ctx context.Context, word string) error {
	if !term.Ask && word == approval.Decline {
		return nil
	}
	if !term.Ask {
		return fmt.Errorf("%w, because there is no terminal to ask on; to %s this call, add --yes", errNotConfirmed, word)
	}
	said, err := term.ask(ctx, word+" this call? [y/N]")
	if err != nil {
		return err
	}
	if said == "y" || said == "yes" {
		return nil
	}
	return errNotConfirmed
}

// inputEnded is the answer of a user who ended the input.
const inputEnded = "\x04"

// ask asks the user on the terminal and returns the answer in lower case.
func (term *terminal) ask(ctx context.Context, question string) (string, error) {
	if _, err := io.WriteString(term.Err, question+" "); err != nil {
		return "", err
	}
	if term.answers == nil {
		term.answers = bufio.NewReader(term.In)
	}
	answer := make(chan string, 1)
	go func() {
		line, err := term.answers.ReadString('\n')
		if err != nil && line == "" {
			note(term.Err, "") // ends the prompt's line
			line = inputEnded
		}
		answer <- strings.ToLower(strings.TrimSpace(line))
	}()
	select {
	case <-ctx.Done():
		return "", ctx.Err()
	case said := <-answer:
		return said, nil
	}
}
