// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

// Package prior decides which earlier task a new one continues (spec.priorTaskRef). The server finds that task when the new one is created,
// and records its UID in status.priorTaskUID: whoever creates a task must be allowed to read what the earlier one changed, and later
// another task of its name is not mistaken for it. The controller waits for its end, and the worker makes its changes.
package prior

import (
	"context"
	"errors"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/apiserver/pkg/authorization/authorizer"
	"k8s.io/apiserver/pkg/endpoints/request"

	"github.com/platform-ai/platform/pkg/apis/core/v1alpha1"
	"github.com/platform-ai/platform/pkg/plan"
	"github.com/platform-ai/platform/pkg/server/registry/core/task/stored"
	"github.com/platform-ai/platform/pkg/server/registry/guard"
)

// Priors finds the tasks that new ones continue. All fields are required.
type Priors struct {
	Tasks stored.Tasks
	// Authorizer decides who may read what a task changed.
	Authorizer authorizer.Authorizer
}

type priorKey struct{}

// Begin finds the task that a new one continues. It travels in the context of the create, because the status of a new object is cleared
// before it is prepared. What is wrong with the new task alone is left to its validation.
func (p Priors) Begin(ctx context.Context, t *v1alpha1.Task) (context.Context, error) {
	ref, namespace := t.Spec.PriorTaskRef, request.NamespaceValue(ctx)
	if ref == nil || ref.Name == t.Name || ref.Namespace != "" && ref.Namespace != namespace || t.Spec.Workspace == nil || t.Spec.Type == v1alpha1.TaskTypeAgent {
		return ctx, nil
	}
	found, err := p.find(ctx, namespace, ref.Name, t)
	if err != nil {
		return ctx, err
	}
	if why := plan.Continues(t, found); why != "" {
		return ctx, invalid(t, field.Invalid(refPath, ref.Name, why))
	}
	return context.WithValue(ctx, priorKey{}, found), nil
}

var refPath = field.NewPath("spec", "priorTaskRef", "name")

func invalid(t *v1alpha1.Task, err *field.Error) error {
	return apierrors.NewInvalid(v1alpha1.SchemeGroupVersion.WithKind("Task").GroupKind(), t.Name, field.ErrorList{err})
}

// find reads the task of a name, if the caller may read what it changed: a worker, of the tasks that its own task delegated. Who may not
// does not learn whether there is such a task.
func (p Priors) find(ctx context.Context, namespace, name string, t *v1alpha1.Task) (*v1alpha1.Task, error) {
	user, _ := request.UserFrom(ctx)
	worker := guard.IsWorker(user)
	if !worker {
		a := authorizer.AttributesRecord{Verb: "get", Namespace: namespace, Resource: "tasks", Subresource: "delta", Name: name}
		if ok, err := guard.May(ctx, p.Authorizer, a); err != nil {
			return nil, err
		} else if !ok {
			return nil, apierrors.NewForbidden(v1alpha1.Resource("tasks"), t.Name, errors.New("spec.priorTaskRef: who continues a task needs the right to get its tasks/delta"))
		}
	}
	found, err := p.Tasks.Get(ctx, name)
	switch {
	case apierrors.IsNotFound(err), err == nil && worker && !sibling(t, found):
		return nil, invalid(t, field.NotFound(refPath, name))
	case err != nil:
		return nil, err
	}
	return found, nil
}

// sibling reports whether a task was delegated by the task that delegates the new one.
func sibling(t, of *v1alpha1.Task) bool {
	controller, d := metav1.GetControllerOfNoCopy(t), of.Status.Delegation
	return controller != nil && d != nil && d.ParentUID == controller.UID
}

// Set records in a new task which one it continues.
func Set(ctx context.Context, t *v1alpha1.Task) {
	if found := Of(ctx); found != nil {
		t.Status.PriorTaskUID = found.UID
	}
}

// Of returns the task that the one which is being created continues; nil if none.
func Of(ctx context.Context) *v1alpha1.Task {
	found, _ := ctx.Value(priorKey{}).(*v1alpha1.Task)
	return found
}

// Keep preserves the record in updates of the status: older clients do not know it, and no client may change it.
func Keep(t, old *v1alpha1.Task) { t.Status.PriorTaskUID = old.Status.PriorTaskUID }

// ValidateUpdate refuses to name another task later.
func ValidateUpdate(t, old *v1alpha1.Task) field.ErrorList {
	names := func(t *v1alpha1.Task) (list []types.NamespacedName) {
		if t.Spec.PriorTaskRef != nil {
			list = append(list, t.Spec.PriorTaskRef.In(t.Namespace))
		}
		return list
	}
	if slices.Equal(names(t), names(old)) {
		return nil
	}
	return field.ErrorList{field.Forbidden(field.NewPath("spec", "priorTaskRef"), "is set when a task is created; create another task")}
}
