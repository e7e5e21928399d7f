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

func (a *app) approvalCommand() *cobra.Command {
	cmd := &cobra.Command{Use: "approval", Aliases: []string{"approvals"}, Short: "What agents ask for, of all tasks"}
	var l listFlags
	var state string
	list := &cobra.Command{Use: "list", Aliases: []string{"ls"}, Short: "List approvals; by default those that wait for a decision", Args: cobra.NoArgs}
	l.add(list)
	list.Flags().StringVar(&state, "state", string(v1alpha1.ApprovalPending), "only in this state; all for every one")
	f := addOutput(list, asTable, asWide, asJSON, asYAML, asName)
	list.RunE = func(cmd *cobra.Command, _ []string) error {
		if err := oneOf("--state", state, states()...); err != nil {
			return err
		}
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
			return err // an unknown task has no approvals, but an empty list would mislead
		}
		l := listFlags{fields: "spec.taskName=" + args[0]}
		if follow {
			return a.watchApprovals(cmd.Context(), c, namespace, l.fields, *f)
		}
		return a.list(cmd.Context(), "approvals", &l, *f)
	}
	return cmd
}

// watchApprovals prints the approvals and then each change of one, until it is interrupted.
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
	defer func() { _ = body.Close() }() // it was only read
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
