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

// errNothingAsked means that a task waits for nobody's decision.
var errNothingAsked = errors.New("waits for no approval")

// pick finds the approval that args (a task and a prefix) select. An empty prefix selects the only pending one. If the task has
// none, those of the tasks below it are searched, so that a whole tree is answered at its root.
func pick(ctx context.Context, c typed.CoreV1alpha1Interface, namespace string, args []string) (*v1alpha1.Approval, error) {
	task, prefix := args[0], args[1]
	if err := longEnough(prefix); prefix != "" && err != nil {
		return nil, err
	}
	found, err := selected(ctx, c, namespace, "spec.taskName="+task, prefix)
	if err != nil {
		return nil, err
	}
	over := ""
	if len(found) == 0 {
		t, err := c.Tasks(namespace).Get(ctx, task, metav1.GetOptions{})
		if err != nil {
			return nil, err // the task does not exist, or the caller may not see it
		}
		if found, err = selected(ctx, c, namespace, "spec.rootTaskUID="+string(t.UID), prefix); err != nil {
			return nil, err
		}
		if t.Status.Phase.Terminal() && !t.Status.HasChildren {
			over = string(t.Status.Phase)
		}
	}
	switch {
	case len(found) == 1:
		return found[0], nil
	case len(found) > 1:
		return nil, fmt.Errorf("task %s has %d such approvals; name one: %s", task, len(found), namesOf(found, task))
	case prefix != "":
		return nil, fmt.Errorf("task %s has no approval %s", task, prefix)
	case over != "":
		return nil, fmt.Errorf("task %s waits for no approval: it has ended (%s)", task, over) // for which nobody needs to wait
	}
	return nil, fmt.Errorf("task %s %w", task, errNothingAsked)
}

// selected returns the approvals of a selector whose names have the prefix; with none, those that are pending.
func selected(ctx context.Context, c typed.CoreV1alpha1Interface, namespace, selector, prefix string) (found []*v1alpha1.Approval, err error) {
	list, err := c.Approvals(namespace).List(ctx, metav1.ListOptions{FieldSelector: selector})
	if err != nil {
		return nil, err
	}
	for i := range list.Items {
		p := &list.Items[i]
		if prefix != "" && strings.HasPrefix(p.Name, prefix) || prefix == "" && p.Status.State == v1alpha1.ApprovalPending {
			found = append(found, p)
		}
	}
	return found, nil
}

// namesOf lists approvals by their names, with the tasks of those that another than task waits for.
func namesOf(list []*v1alpha1.Approval, task string) string {
	names := make([]string, len(list))
	for i, p := range list {
		if names[i] = p.Name; p.Spec.TaskName != task {
			names[i] += " (task " + p.Spec.TaskName + ")"
		}
	}
	return strings.Join(names, ", ")
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
	var all []*v1alpha1.Approval
	for i := range list.Items {
		if p := &list.Items[i]; strings.HasPrefix(p.Name, prefix) {
			all = append(all, p)
		}
	}
	switch len(all) {
	case 0:
		return nil, fmt.Errorf("approval %q: no id is this or begins with this", prefix)
	case 1:
		return all[0], nil
	}
	return nil, errors.New("approval " + prefix + ": several ids begin with this: " + namesOf(all, ""))
}
