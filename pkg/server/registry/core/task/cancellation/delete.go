// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package cancellation

import (
	"context"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/internalversion"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apiserver/pkg/endpoints/request"

	"github.com/platform-ai/platform/pkg/apis/core/v1alpha1"
)

// BeforeDelete cancels what a task has delegated before the task is deleted, and the task itself, so that it delegates
// nothing more. It cancels the runs of a schedule, too: a deletion that keeps them (propagationPolicy Orphan) leaves nothing that
// works without the task that asked for it.
func (r Cancellations) BeforeDelete(ctx context.Context, t *v1alpha1.Task) error {
	const why = "the task above was deleted"
	if t.Spec.Schedule != "" || t.Status.LastScheduleTime != nil {
		runs, err := r.activeRuns(ctx, t)
		if err != nil {
			return err
		}
		for _, run := range runs {
			if err := r.cancelTree(ctx, run, true, why); err != nil && !apierrors.IsConflict(err) && !apierrors.IsNotFound(err) { // it ended or was deleted meanwhile
				return err
			}
		}
	}
	if !t.Status.HasChildren {
		return nil
	}
	err := r.cancelTree(ctx, t, !t.Status.Phase.Terminal(), why)
	if apierrors.IsConflict(err) { // it ended meanwhile
		err = r.cancelTree(ctx, t, false, why)
	}
	return err
}

// activeRuns returns the runs of a schedule that have not ended. One that is created from now on has an owner that is being
// deleted, so it goes with that, or is collected.
func (r Cancellations) activeRuns(ctx context.Context, t *v1alpha1.Task) (runs []*v1alpha1.Task, err error) {
	ctx = request.WithUser(request.WithNamespace(ctx, t.Namespace), nil)
	selector := labels.SelectorFromSet(labels.Set{v1alpha1.LabelParentTask: v1alpha1.LabelValue(t.Name)})
	err = r.Tasks.EachOf(ctx, &internalversion.ListOptions{LabelSelector: selector}, func(run *v1alpha1.Task) {
		if metav1.IsControlledBy(run, t) && run.Status.Delegation == nil && !run.Status.Phase.Terminal() {
			runs = append(runs, run.DeepCopy())
		}
	})
	return runs, err
}
