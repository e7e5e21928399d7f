// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"cmp"
	"context"
	"fmt"
	"regexp"

	"github.com/spf13/cobra"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/platform-ai/platform/pkg/apis/core/v1alpha1"
	typed "github.com/platform-ai/platform/pkg/generated/clientset/versioned/typed/core/v1alpha1"
)

// taskSuspend returns the command that sets or clears spec.suspend.
func taskSuspend(api *server, term *terminal, verb, short, done string, suspend bool) *cobra.Command {
	patch := fmt.Appendf(nil, `{"spec":{"suspend":%t}}`, suspend)
	return eachNamed(api, verb+" TASK...", short, "tasks", func(ctx context.Context, c typed.CoreV1alpha1Interface, namespace, name string) error {
		t, err := c.Tasks(namespace).Get(ctx, name, metav1.GetOptions{})
		if err != nil {
			return err
		}
		if t.Status.Phase.Terminal() {
			return fmt.Errorf("task %s has ended (%s), so there is nothing to %s", name, t.Status.Phase, verb)
		}
		if _, err := c.Tasks(namespace).Patch(ctx, name, types.MergePatchType, patch, metav1.PatchOptions{FieldManager: "platform"}); err != nil {
			return err
		}
		return term.say("task %s %s", name, done)
	})
}

// rerunName is what the name of a run that was repeated ends with, so that a repetition of it does not add to it.
var rerunName = regexp.MustCompile(`-rerun-[0-9a-z]{5,8}$`)

func taskRerun(api *server, term *terminal) *cobra.Command {
	cmd := eachNamed(api, "rerun TASK...", "Run tasks that have ended once more", "tasks", func(ctx context.Context, c typed.CoreV1alpha1Interface, namespace, name string) error {
		t, err := c.Tasks(namespace).Get(ctx, name, metav1.GetOptions{})
		if err != nil {
			return err
		}
		if !t.Status.Phase.Terminal() {
			return fmt.Errorf("task %s has not ended (%s), so it cannot be run again", name, cmp.Or(t.Status.Phase, v1alpha1.TaskPending))
		}
		run := t.Again()
		run.GenerateName = rerunName.ReplaceAllString(name, "") + "-rerun-"
		made, err := c.Tasks(namespace).Create(ctx, run, metav1.CreateOptions{FieldManager: "platform"})
		if err != nil {
			return err
		}
		return term.say("task %s created, to run %s again", made.Name, name)
	})
	cmd.Aliases = []string{"retry"}
	cmd.Long = "Run tasks that have ended once more, however they ended: a new task is made from the spec and the labels of each. platform task fork\n" +
		"continues a task instead, from a point of its history."
	return cmd
}

func taskRunNow(api *server, term *terminal) *cobra.Command {
	var name string
	var watch bool
	cmd := &cobra.Command{
		Use: "run-now SCHEDULE", Short: "Run a scheduled task once, now", Args: cobra.ExactArgs(1), ValidArgsFunction: api.names("tasks"),
		Long: "Run a scheduled task once, now, even while it is suspended. The run is yours, and counts among the runs of the schedule:\n" +
			"its history limits apply, and a run that becomes due meanwhile is skipped unless the schedule allows several at a time.",
	}
	cmd.Flags().StringVar(&name, "name", "", "name of the run (default: one is made)")
	cmd.Flags().BoolVarP(&watch, "watch", "w", false, "follow the run to its end; the exit code reports the outcome")
	f := addOutput(cmd, asTable, asJSON, asYAML, asName)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		c, namespace, err := api.client()
		if err != nil {
			return err
		}
		t, err := c.Tasks(namespace).Get(cmd.Context(), args[0], metav1.GetOptions{})
		if err != nil {
			return err
		}
		if t.Spec.Schedule == "" {
			return fmt.Errorf("task %s has no schedule", t.Name)
		}
		run := t.RunOfSchedule()
		run.Name, run.GenerateName = name, t.Name+"-"
		run.OwnerReferences = []metav1.OwnerReference{*metav1.NewControllerRef(t, v1alpha1.SchemeGroupVersion.WithKind("Task"))}
		run.OwnerReferences[0].BlockOwnerDeletion = nil // it would need the right to change the schedule's finalizers
		return createTask(cmd.Context(), api, term, run, watch, *f)
	}
	return cmd
}
