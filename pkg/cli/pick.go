// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"context"
	"errors"
	"fmt"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/platform-ai/platform/pkg/apis/core/v1alpha1"
	typed "github.com/platform-ai/platform/pkg/generated/clientset/versioned/typed/core/v1alpha1"
)

// shortestPrefix is the minimum length of a prefix that identifies an approval.
const shortestPrefix = 4

// pick finds the approval of a task that args (the task and a prefix) select. An empty prefix selects the only
// pending one.
func pick(ctx context.Context, c typed.CoreV1alpha1Interface, namespace string, args []string) (*v1alpha1.Approval, error) {
	task, prefix := args[0], args[1]
	if err := longEnough(prefix); prefix != "" && err != nil {
		return nil, err
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

func longEnough(prefix string) error {
	if len(prefix) < shortestPrefix {
		return fmt.Errorf("approval %q: give at least %d characters of the id", prefix, shortestPrefix)
	}
	return nil
}

// pickAny finds the approval in the namespace that has this name, or the only one whose name begins with it.
func pickAny(ctx context.Context, c typed.CoreV1alpha1Interface, namespace, prefix string) (*v1alpha1.Approval, error) {
	found, err := c.Approvals(namespace).Get(ctx, prefix, metav1.GetOptions{})
	if !apierrors.IsNotFound(err) {
		return found, err
	}
	if err := longEnough(prefix); err != nil {
		return nil, err
	}
	list, err := c.Approvals(namespace).List(ctx, metav1.ListOptions{})
	if err != nil {
		return nil, err
	}
	found = nil
	var names []string
	for i := range list.Items {
		if p := &list.Items[i]; strings.HasPrefix(p.Name, prefix) {
			found, names = p, append(names, p.Name+" (task "+p.Spec.TaskName+")")
		}
	}
	switch len(names) {
	case 0:
		return nil, fmt.Errorf("approval %q: no id is this or begins with this", prefix)
	case 1:
		return found, nil
	}
	return nil, errors.New("approval " + prefix + ": several ids begin with this: " + strings.Join(names, ", "))
}
