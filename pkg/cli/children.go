// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"github.com/spf13/cobra"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/platform-ai/platform/pkg/apis/core/v1alpha1"
)

// childrenOf returns the selectors, of labels and of fields, of the tasks that a task delegated, and of the runs of a schedule. The label
// alone may be anybody's.
func childrenOf(t *v1alpha1.Task) (labels, fields string) {
	return v1alpha1.LabelParentTask + "=" + v1alpha1.LabelValue(t.Name), "parentTaskUID=" + string(t.UID)
}

func taskChildren(api *server, term *terminal) *cobra.Command {
	var follow bool
	cmd := &cobra.Command{
		Use: "children TASK", Short: "List what a task delegated itself, or the runs of a schedule", Args: cobra.ExactArgs(1), ValidArgsFunction: api.names("tasks"),
		Long: "List the tasks that a task delegated itself, or the runs of a schedule. platform task tree shows all levels.",
	}
	cmd.Flags().BoolVarP(&follow, "watch", "w", false, "go on with every change, until you stop")
	f := addOutput(cmd, objectFormats...)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		c, namespace, err := api.client()
		if err != nil {
			return err
		}
		t, err := c.Tasks(namespace).Get(cmd.Context(), args[0], metav1.GetOptions{})
		if err != nil {
			return err // an unknown task has no children, but an empty list would mislead
		}
		labels, fields := childrenOf(t)
		return printList(cmd.Context(), api, term, "tasks", &listFlags{selector: labels, fields: fields, follow: follow}, *f)
	}
	return cmd
}
