// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package task

import (
	"context"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/platform-ai/platform/pkg/apis/core/v1alpha1"
	"github.com/platform-ai/platform/pkg/readmodel/progress"
	"github.com/platform-ai/platform/pkg/server/registry/core/task/stored"
)

// maxPlan is the maximum length of a plan as JSON, in bytes. JSON needs up to six bytes for a character.
const maxPlan = 256 << 10

// plans serves the subresource plan.
type plans struct{ *Resource }

// get returns the newest plan of a task that has not ended.
func (r plans) get(ctx context.Context, p stored.Parent) (runtime.Object, error) {
	t := p.Object
	if phase := t.Status.Phase; phase.Terminal() {
		return nil, noPlan(t, fmt.Sprintf("it is %s, and the plan of a task goes when it ends; its events of type %s remain", phase, v1alpha1.EventPlanUpdated))
	}
	first, newest, err := r.log.Newest(ctx, stored.Stream(t), v1alpha1.EventPlanUpdated)
	if err != nil {
		return nil, err
	}
	if newest == nil {
		return nil, noPlan(t, "its agent has not written one")
	}
	return progress.Of(first, newest), nil
}

func noPlan(t *v1alpha1.Task, why string) error {
	err := apierrors.NewNotFound(v1alpha1.Resource("tasks/plan"), t.Name)
	err.ErrStatus.Message = fmt.Sprintf("task %q has no plan: %s", t.Name, why)
	return err
}

// update replaces the plan by appending an event. Nothing is appended for a plan that is the task's already, so a
// worker may repeat a request whose answer it did not get.
func (r plans) update(ctx context.Context, p stored.Parent, obj runtime.Object) (runtime.Object, error) {
	t := p.Object
	plan, ok := obj.(*v1alpha1.TaskPlan)
	if !ok {
		return nil, apierrors.NewBadRequest(fmt.Sprintf("the body must be a TaskPlan, not %T", obj))
	}
	if err := progress.Check(plan); err != nil {
		return nil, apierrors.NewBadRequest(err.Error())
	}
	if err := appends(r).mayAppend(ctx, t, ""); err != nil {
		return nil, err
	}
	e, err := progress.Event(plan, t.Status.Iteration)
	if err != nil {
		return nil, apierrors.NewBadRequest(err.Error())
	}
	e.AgentName = t.Status.AgentName
	if err := appends(r).admit(ctx, t, e, p.DryRun); err != nil {
		return nil, err
	}
	first, newest, err := r.log.Newest(ctx, stored.Stream(t), v1alpha1.EventPlanUpdated)
	switch {
	case err != nil:
		return nil, err
	case newest != nil && progress.Same(newest, e):
	case p.DryRun:
		e.TaskName, e.StreamNamespace = t.Name, t.Namespace
		newest = e
	default:
		stored, err := appends(r).write(ctx, t, []*v1alpha1.ExecutionEvent{e})
		if err != nil {
			return nil, err
		}
		newest = stored[0]
	}
	if first == nil {
		first = newest
	}
	return progress.Of(first, newest), nil
}
