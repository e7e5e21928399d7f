// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package task

import (
	"context"
	"fmt"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	"github.com/platform-ai/platform/pkg/apis/core/v1alpha1"
)

// runAPI reads, creates and deletes the runs of a schedule.
type runAPI struct{ *wire }

// children returns the runs of a schedule, in the order of their creation.
func (w runAPI) children(ctx context.Context, t *v1alpha1.Task) ([]v1alpha1.Task, error) {
	var tasks v1alpha1.TaskList
	err := w.List(ctx, &tasks, client.InNamespace(t.Namespace), below(t), client.MatchingLabels{v1alpha1.LabelScheduledRun: "true"})
	if err != nil {
		return nil, fmt.Errorf("scheduled runs: %w", err)
	}
	own := tasks.Items[:0]
	for _, c := range tasks.Items {
		if metav1.IsControlledBy(&c, t) {
			own = append(own, c)
		}
	}
	slices.SortFunc(own, func(a, b v1alpha1.Task) int { return turnOf(&a).compare(turnOf(&b)) })
	return own, nil
}

// createChild creates a run. It is not an error if the run exists already.
func (w runAPI) createChild(ctx context.Context, t, child *v1alpha1.Task) error {
	if err := controllerutil.SetControllerReference(t, child, w.Scheme()); err != nil {
		return fmt.Errorf("scheduled run: %w", err)
	}
	err := w.Create(ctx, child)
	if apierrors.IsAlreadyExists(err) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("scheduled run: %w", err)
	}
	return nil
}

func (w runAPI) remove(ctx context.Context, t *v1alpha1.Task) error {
	err := w.Delete(ctx, t, client.Preconditions{UID: new(t.UID)}, client.PropagationPolicy(metav1.DeletePropagationBackground))
	if client.IgnoreNotFound(err) != nil && !apierrors.IsConflict(err) {
		return fmt.Errorf("old run %s: %w", t.Name, err)
	}
	return nil
}
