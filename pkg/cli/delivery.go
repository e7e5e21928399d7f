// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/spf13/cobra"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/platform-ai/platform/pkg/apis/core/v1alpha1"
	typed "github.com/platform-ai/platform/pkg/generated/clientset/versioned/typed/core/v1alpha1"
	"github.com/platform-ai/platform/pkg/workspace"
)

// printChanges prints what the run of a task changed in its repository.
func printChanges(ctx context.Context, term *terminal, c typed.CoreV1alpha1Interface, namespace, task string) error {
	body, err := c.RESTClient().Get().Namespace(namespace).Resource("tasks").Name(task).SubResource("artifacts").Suffix(workspace.DiffName).Stream(ctx)
	if apierrors.IsNotFound(err) {
		if _, missing := c.Tasks(namespace).Get(ctx, task, metav1.GetOptions{}); missing != nil {
			return missing
		}
		return fmt.Errorf("task %q changed no repository: only one with spec.workspace.intent write whose run succeeded has a diff", task)
	}
	if err != nil {
		return err
	}
	defer func() { _ = body.Close() }() // it was only read
	_, err = io.Copy(term.file(), body)
	return err
}

func taskDelivery(api *server, term *terminal) *cobra.Command {
	cmd := &cobra.Command{Use: "delivery TASK", Short: "Show what became of what a task changed in its repository", Args: cobra.ExactArgs(1), ValidArgsFunction: api.names("tasks")}
	f := addOutput(cmd, "text", asJSON, asYAML)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		c, namespace, err := api.client()
		if err != nil {
			return err
		}
		t, err := c.Tasks(namespace).Get(cmd.Context(), args[0], metav1.GetOptions{})
		if err != nil {
			return err
		}
		d := t.Status.Delivery
		if d == nil {
			return errors.New("the task has no repository (spec.workspace), or its run has not begun")
		}
		if *f == asJSON || *f == asYAML {
			return term.write(d, *f)
		}
		before := ""
		if d.RemoteBeforeSHA != nil {
			if before = *d.RemoteBeforeSHA; before == "" {
				before = "none"
			}
		}
		pull := ""
		if r := d.PRReceipt; r != nil {
			pull = fmt.Sprintf("%s (%s), %s to %s at %s", r.URL, r.State, r.HeadBranch, r.BaseBranch, r.HeadSHA)
		}
		var rows [][]string
		for _, r := range [][]string{
			{"State:", string(d.State)},
			{"Message:", d.Message},
			{"Repository:", publishedTo(t)},
			{"Branch:", d.Branch},
			{"Run began with:", d.StartingSHA},
			{"Branch before:", before},
			{"Commit:", d.ExpectedCommitSHA},
			{"Seen at:", d.VerifiedRemoteSHA},
			{"Went on to:", d.SupersedingRemoteSHA},
			{"Pull request:", pull},
			{"Tree:", d.TreeSHA},
			{"Digest of changes:", d.ArtifactDigest},
			{"Publication:", d.PublicationID},
		} {
			if r[1] != "" {
				rows = append(rows, r)
			}
		}
		return term.wholeColumns(rows)
	}
	return cmd
}

// publishedTo is the repository that a task publishes to; empty if it publishes nothing.
func publishedTo(t *v1alpha1.Task) string {
	if !t.Spec.Workspace.Writes() {
		return ""
	}
	return t.Spec.Workspace.PublicationURL()
}

// deliveryOf says in one line what became of what a task changed; empty if nothing was to be published.
func deliveryOf(t *v1alpha1.Task) string {
	d := t.Status.Delivery
	if d == nil || d.State == "" || d.State == v1alpha1.DeliveryNotRequested {
		return ""
	}
	text := string(d.State)
	if d.Branch != "" {
		text += ", branch " + d.Branch
	}
	if d.ExpectedCommitSHA != "" {
		text += ", commit " + d.ExpectedCommitSHA
	}
	return text
}
