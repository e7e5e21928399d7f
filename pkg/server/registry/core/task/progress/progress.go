// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

// Package progress serves the plans that agents write for their tasks. A plan is an event, which package readmodel/progress reads.
package progress

import (
	"context"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/platform-ai/platform/pkg/apis/core/v1alpha1"
	"github.com/platform-ai/platform/pkg/readmodel/progress"
	"github.com/platform-ai/platform/pkg/server/registry/core/task/stored"
	"github.com/platform-ai/platform/pkg/storage/eventlog"
)

// MaxBytes is the maximum length of a plan as JSON, in bytes. JSON needs up to six bytes for a character.
const MaxBytes = 256 << 10

// Events appends the events that plans are.
type Events interface {
	// MayAppend refuses to write to a task that has ended or is being deleted. owned is empty.
	MayAppend(ctx context.Context, t *v1alpha1.Task, owned v1alpha1.EventType) error
	// Admit puts an event to admission.
	Admit(ctx context.Context, t *v1alpha1.Task, e *v1alpha1.ExecutionEvent, dryRun bool) error
	// Write appends events.
	Write(ctx context.Context, t *v1alpha1.Task, events []*v1alpha1.ExecutionEvent) ([]*v1alpha1.ExecutionEvent, error)
}

// Plans serves the subresource plan. All fields are required.
type Plans struct {
	Log    *eventlog.Log
	Events Events
}

// Get returns the newest plan of a task that has not ended.
func (r Plans) Get(ctx context.Context, p stored.Parent) (runtime.Object, error) {
	t := p.Object
	if phase := t.Status.Phase; phase.Terminal() {
		return nil, noPlan(t, fmt.Sprintf("it is %s, and the plan of a task goes when it ends; its events of type %s remain", phase, v1alpha1.EventPlanUpdated))
	}
	first, newest, err := r.Log.Newest(ctx, stored.Stream(t), v1alpha1.EventPlanUpdated)
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

// Update replaces the plan by appending an event. Nothing is appended for a plan that is the task's already, so a
// worker may repeat a request whose answer it did not get.
func (r Plans) Update(ctx context.Context, p stored.Parent, obj runtime.Object) (runtime.Object, error) {
	t := p.Object
	plan, ok := obj.(*v1alpha1.TaskPlan)
	if !ok {
		return nil, apierrors.NewBadRequest(fmt.Sprintf("the body must be a TaskPlan, not %T", obj))
	}
	if err := progress.Check(plan); err != nil {
		return nil, apierrors.NewBadRequest(err.Error())
	}
	if err := r.Events.MayAppend(ctx, t, ""); err != nil {
		return nil, err
	}
	e, err := progress.Event(plan, t.Status.Iteration)
	if err != nil {
		return nil, apierrors.NewBadRequest(err.Error())
	}
	e.AgentName = t.Status.AgentName
	if err := r.Events.Admit(ctx, t, e, p.DryRun); err != nil {
		return nil, err
	}
	first, newest, err := r.Log.Newest(ctx, stored.Stream(t), v1alpha1.EventPlanUpdated)
	switch {
	case err != nil:
		return nil, err
	case newest != nil && progress.Same(newest, e):
	case p.DryRun:
		e.TaskName, e.StreamNamespace = t.Name, t.Namespace
		newest = e
	default:
		stored, err := r.Events.Write(ctx, t, []*v1alpha1.ExecutionEvent{e})
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
