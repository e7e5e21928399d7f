// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/spf13/cobra"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/platform-ai/platform/pkg/apis/core/v1alpha1"
)

// auditCommand shows what was done in a transaction.
func auditCommand(api *server, term *terminal) *cobra.Command {
	top := &cobra.Command{Use: "audit", Short: "What was done in whose name"}
	var everywhere bool
	var limit int
	cmd := &cobra.Command{
		Use: "trace TRANSACTION", Short: "List the tasks of a transaction, in the order of their creation", Args: cobra.ExactArgs(1),
		Long: "List the tasks that were created in a transaction (spec.transaction.id), with those that they delegated, in the order of their\n" +
			"creation. platform task trace shows what each of them did.",
	}
	cmd.Flags().IntVar(&limit, "limit", 0, "at most this many; 0 is all")
	cmd.Flags().BoolVarP(&everywhere, "all-namespaces", "A", false, "of all namespaces")
	f := addOutput(cmd, asTable, asJSON, asYAML)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if limit < 0 {
			return errors.New("--limit: must be at least 0")
		}
		tasks, err := transactionTasks(cmd.Context(), api, args[0], everywhere)
		if err != nil {
			return err
		}
		left := 0
		if limit > 0 && len(tasks) > limit {
			left, tasks = len(tasks)-limit, tasks[:limit]
		}
		if err := printTransaction(term, tasks, everywhere, *f); err != nil {
			return err
		}
		if left > 0 {
			note(term.Err, fmt.Sprintf("%s not shown: --limit", many(left, "more task")))
		}
		return nil
	}
	top.AddCommand(cmd)
	return top
}

// auditPage is how many tasks are read at a time.
const auditPage = 500

// transactionTasks returns the tasks of a transaction, in the order of their creation.
func transactionTasks(ctx context.Context, api *server, id string, everywhere bool) ([]v1alpha1.Task, error) {
	c, namespace, err := api.client()
	if err != nil {
		return nil, err
	}
	if everywhere {
		namespace = metav1.NamespaceAll
	}
	var tasks []v1alpha1.Task
	o := metav1.ListOptions{LabelSelector: v1alpha1.LabelTransactionID + "=" + v1alpha1.TransactionLabel(id), Limit: auditPage}
	for {
		page, err := c.Tasks(namespace).List(ctx, o)
		if err != nil {
			return nil, err
		}
		for i := range page.Items { // a label may stand for several ids
			if x := page.Items[i].Spec.Transaction; x != nil && x.ID == id {
				tasks = append(tasks, page.Items[i])
			}
		}
		if o.Continue = page.Continue; o.Continue == "" {
			break
		}
	}
	slices.SortStableFunc(tasks, func(x, y v1alpha1.Task) int {
		return cmp.Or(cmp.Compare(x.Status.CreationRevision, y.Status.CreationRevision), x.CreationTimestamp.Compare(y.CreationTimestamp.Time))
	})
	return tasks, nil
}

// printTransaction prints the tasks of a transaction.
func printTransaction(term *terminal, tasks []v1alpha1.Task, everywhere bool, f format) error {
	if f != asTable {
		list := &v1alpha1.TaskList{Items: tasks}
		list.SetGroupVersionKind(v1alpha1.SchemeGroupVersion.WithKind("TaskList"))
		return term.objectPrinter(f, false).PrintObj(list, term.Out)
	}
	if len(tasks) == 0 {
		note(term.Err, "nothing found")
		return nil
	}
	rows := [][]string{{"NAME", "PHASE", "AGENT", "PARENT", "SUBJECT", "WORKLOAD", "AGE"}}
	for i := range tasks {
		t := &tasks[i]
		parent := ""
		if owner := metav1.GetControllerOf(t); owner != nil {
			parent = owner.Name
		}
		x := t.Spec.Transaction
		rows = append(rows, []string{t.Name, string(t.Status.Phase), t.Status.AgentName, parent, clean(x.Subject), clean(x.RequestingWorkload), term.age(t.CreationTimestamp.Time)})
	}
	if everywhere {
		rows[0] = append([]string{"NAMESPACE"}, rows[0]...)
		for i := range tasks {
			rows[i+1] = append([]string{tasks[i].Namespace}, rows[i+1]...)
		}
	}
	return term.columns(rows)
}
