// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/platform-ai/platform/pkg/apis/core/v1alpha1"
	typed "github.com/platform-ai/platform/pkg/generated/clientset/versioned/typed/core/v1alpha1"
)

func (a *app) approvalCommand() *cobra.Command {
	cmd := &cobra.Command{Use: "approval", Aliases: []string{"approvals"}, Short: "What agents ask for, of all tasks"}
	var l listFlags
	var state string
	list := &cobra.Command{Use: "list", Aliases: []string{"ls"}, Short: "List approvals; by default those that wait for a decision", Args: cobra.NoArgs}
	l.add(list)
	list.Flags().StringVar(&state, "state", string(v1alpha1.ApprovalPending), "only in this state; all for every one")
	f := addOutput(list, asTable, asWide, asJSON, asYAML, asName)
	list.RunE = func(cmd *cobra.Command, _ []string) error {
		if state != "all" {
			l.fields = strings.Trim(l.fields+",status.state="+state, ",")
		}
		return a.list(cmd.Context(), "approvals", &l, *f)
	}
	cmd.AddCommand(list)
	return cmd
}

func (a *app) taskApprovals() *cobra.Command {
	var follow bool
	cmd := &cobra.Command{Use: "approvals TASK", Short: "What a task asked for, and what was decided", Args: cobra.ExactArgs(1), ValidArgsFunction: a.names("tasks")}
	cmd.Flags().BoolVarP(&follow, "watch", "w", false, "go on with every change")
	f := addOutput(cmd, asTable, asWide, asJSON, asYAML, asName)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		c, namespace, err := a.client()
		if err != nil {
			return err
		}
		if _, err := c.Tasks(namespace).Get(cmd.Context(), args[0], metav1.GetOptions{}); err != nil {
			return err // an unknown task has no approvals, but that would be no answer
		}
		l := listFlags{fields: "spec.taskName=" + args[0]}
		if follow {
			return a.watchApprovals(cmd.Context(), c, namespace, l.fields, *f)
		}
		return a.list(cmd.Context(), "approvals", &l, *f)
	}
	return cmd
}

// watchApprovals prints the approvals and each change of one, until it is interrupted.
func (a *app) watchApprovals(ctx context.Context, c typed.CoreV1alpha1Interface, namespace, fields string, f format) error {
	p := a.objectPrinter(f, false)
	r := c.RESTClient().Get().Namespace(namespace).Resource("approvals").Param("fieldSelector", fields).Param("watch", "true")
	if f == asTable || f == asWide {
		r = r.SetHeader("Accept", tableHeader)
	}
	body, err := r.Stream(ctx)
	if err != nil {
		return err
	}
	defer func() { _ = body.Close() }() // it was read; nothing is lost
	in := json.NewDecoder(body)
	for {
		var e metav1.WatchEvent
		if err := in.Decode(&e); err != nil {
			if errors.Is(err, io.EOF) || ctx.Err() != nil {
				return ctx.Err()
			}
			return fmt.Errorf("watch: %w", err)
		}
		if e.Type == string(watch.Bookmark) {
			continue
		}
		if e.Type == string(watch.Error) {
			var status metav1.Status
			if err := json.Unmarshal(e.Object.Raw, &status); err != nil {
				return fmt.Errorf("watch: %w", err)
			}
			return fmt.Errorf("watch: %s", status.Message)
		}
		obj, err := decode(e.Object.Raw, f)
		if err != nil {
			return err
		}
		if err := p.PrintObj(obj, a.Out); err != nil {
			return fmt.Errorf("output: %w", err)
		}
	}
}

// shortestPrefix is how much of an approval's id is enough to name it.
const shortestPrefix = 4

func (a *app) taskDecide(word, short string) *cobra.Command {
	var reason string
	cmd := &cobra.Command{
		Use: word + " TASK [APPROVAL]", Short: short, Args: cobra.RangeArgs(1, 2), ValidArgsFunction: a.names("tasks"),
		Long: short + ".\n\nAPPROVAL is the id, or its beginning. Where a single approval of the task is pending it can be left out.",
	}
	cmd.Flags().StringVar(&reason, "reason", "", "why, for who reads the events and for the agent")
	f := addOutput(cmd, asTable, asJSON, asYAML)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		c, namespace, err := a.client()
		if err != nil {
			return err
		}
		prefix := ""
		if len(args) == 2 {
			prefix = args[1]
		}
		id, err := pick(cmd.Context(), c, namespace, args[0], prefix)
		if err != nil {
			return err
		}
		d := &v1alpha1.ApprovalDecision{Spec: v1alpha1.ApprovalDecisionSpec{Decision: word, Reason: reason, TaskName: args[0]}}
		done, err := c.Approvals(namespace).Decide(cmd.Context(), id, d, metav1.CreateOptions{})
		if err != nil {
			return err
		}
		if *f != asTable {
			return a.write(done, *f)
		}
		what := done.Spec.TargetTool
		if done.Spec.Action != "" {
			what = strings.TrimPrefix(what+": "+done.Spec.Action, ": ")
		}
		return a.say("%s by %s: %s", done.Status.State, done.Status.DecisionActor, clean(what))
	}
	return cmd
}

// pick finds the approval of a task that a prefix names, or the only pending one.
func pick(ctx context.Context, c typed.CoreV1alpha1Interface, namespace, task, prefix string) (string, error) {
	if len(prefix) == 64 {
		return prefix, nil
	}
	if prefix != "" && len(prefix) < shortestPrefix {
		return "", fmt.Errorf("approval %q: give at least %d characters of the id", prefix, shortestPrefix)
	}
	list, err := c.Approvals(namespace).List(ctx, metav1.ListOptions{FieldSelector: "spec.taskName=" + task})
	if err != nil {
		return "", err
	}
	var found []string
	for i := range list.Items {
		p := &list.Items[i]
		if prefix != "" && strings.HasPrefix(p.Name, prefix) || prefix == "" && p.Status.State == v1alpha1.ApprovalPending {
			found = append(found, p.Name)
		}
	}
	switch {
	case len(found) == 1:
		return found[0], nil
	case len(found) > 1:
		return "", fmt.Errorf("task %s has %d such approvals; name one: %s", task, len(found), strings.Join(found, ", "))
	case prefix != "":
		return "", fmt.Errorf("task %s has no approval %s", task, prefix)
	}
	return "", fmt.Errorf("task %s waits for no approval", task)
}
