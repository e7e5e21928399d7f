// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"context"
	"errors"
	"fmt"

	"github.com/spf13/cobra"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/platform-ai/platform/pkg/apis/core/v1alpha1"
	typed "github.com/platform-ai/platform/pkg/generated/clientset/versioned/typed/core/v1alpha1"
)

func taskDetach(api *server, term *terminal) *cobra.Command {
	var reason string
	cmd := &cobra.Command{
		Use: "detach PARENT CHILD...", Short: "Let delegated tasks go on without the task that delegated them",
		Args: cobra.MinimumNArgs(2), ValidArgsFunction: api.namesOf("tasks"),
	}
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		c, namespace, err := api.client()
		if err != nil {
			return err
		}
		var failed error
		for _, name := range args[1:] {
			if err := detach(cmd.Context(), c.Tasks(namespace), args[0], name, reason); err != nil {
				failed = errors.Join(failed, errors.New(explain(err)))
				continue
			}
			failed = errors.Join(failed, term.say("task %s goes on without task %s", name, args[0]))
		}
		return failed
	}
	cmd.Flags().StringVar(&reason, "reason", "", "why, for readers of the events")
	return cmd
}

func detach(ctx context.Context, tasks typed.TaskInterface, parent, name, reason string) error {
	child, err := tasks.Get(ctx, name, metav1.GetOptions{})
	if err != nil {
		return err
	}
	if d := child.Status.Delegation; d == nil || d.Parent != parent {
		return fmt.Errorf("task %s was not delegated by task %s", name, parent)
	}
	_, err = tasks.Detach(ctx, name, &v1alpha1.TaskDetachment{Reason: reason}, metav1.CreateOptions{})
	return err
}
