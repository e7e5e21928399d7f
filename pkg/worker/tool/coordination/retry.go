// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package coordination

import (
	"context"
	"strconv"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/platform-ai/platform/pkg/apis/core/v1alpha1"
	"github.com/platform-ai/platform/pkg/worker/toolkit"
)

// Nothing is repeated by itself. A child is a retry of an earlier one if both were delegated with auto_retry, to the
// same agent and with the same prompt, and the earlier one failed.

// isRetried reports whether the child failed and may be delegated again with the same prompt.
func isRetried(t *v1alpha1.Task) bool {
	return t.Status.Phase == v1alpha1.TaskFailed && t.Annotations[v1alpha1.AnnotationAutoRetry] == "true"
}

// sameRequest reports whether two children were asked the same, with auto_retry.
func sameRequest(a, b *v1alpha1.Task) bool {
	return a.Annotations[v1alpha1.AnnotationAutoRetry] == "true" && b.Annotations[v1alpha1.AnnotationAutoRetry] == "true" &&
		a.Spec.AgentRef != nil && b.Spec.AgentRef != nil && a.Spec.AgentRef.Name == b.Spec.AgentRef.Name && a.Spec.Prompt == b.Spec.Prompt
}

// retries returns the number of an annotation; 0 if it has none.
func retries(t *v1alpha1.Task, annotation string) int {
	n, err := strconv.Atoi(t.Annotations[annotation])
	if err != nil {
		return 0
	}
	return n
}

// countRetries records in a new child how many children failed before it at the same request.
func (f *family) countRetries(ctx context.Context, child *v1alpha1.Task) error {
	children, err := f.children(ctx)
	if err != nil {
		return toolkit.Explain(ctx, err)
	}
	count := 0
	for i := range children {
		if c := &children[i]; isRetried(c) && sameRequest(c, child) {
			count = max(count, retries(c, v1alpha1.AnnotationRetryCount)+1)
		}
	}
	child.Annotations[v1alpha1.AnnotationRetryCount] = strconv.Itoa(count)
	return nil
}

// retryOf returns the name of the first child that repeated a failed one; empty if none did.
func retryOf(t *v1alpha1.Task, children []v1alpha1.Task) string {
	if !isRetried(t) {
		return ""
	}
	var first *v1alpha1.Task
	for i := range children {
		c := &children[i]
		later := c.Status.CreationRevision > t.Status.CreationRevision && retries(c, v1alpha1.AnnotationRetryCount) > retries(t, v1alpha1.AnnotationRetryCount)
		if later && sameRequest(t, c) && (first == nil || c.Status.CreationRevision < first.Status.CreationRevision) {
			first = c
		}
	}
	if first == nil {
		return ""
	}
	return first.Name
}

// children returns the tasks that the run's task delegated.
func (f *family) children(ctx context.Context) ([]v1alpha1.Task, error) {
	var mine []v1alpha1.Task
	err := f.persist(ctx, func() error {
		list, err := f.api.CoreV1alpha1().Tasks(f.task.Namespace).List(ctx, metav1.ListOptions{LabelSelector: f.selector()})
		if err != nil {
			return err
		}
		mine = mine[:0]
		for i := range list.Items {
			if f.isChild(&list.Items[i]) {
				mine = append(mine, list.Items[i])
			}
		}
		return nil
	})
	return mine, err
}

// selector selects the children of the run's task.
func (f *family) selector() string {
	return v1alpha1.LabelParentTask + "=" + v1alpha1.LabelValue(f.task.Name)
}
