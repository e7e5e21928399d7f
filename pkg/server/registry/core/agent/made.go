// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"context"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metainternalversion "k8s.io/apimachinery/pkg/apis/meta/internalversion"
	"k8s.io/apiserver/pkg/endpoints/request"

	"github.com/platform-ai/platform/pkg/apis/core/v1alpha1"
	"github.com/platform-ai/platform/pkg/plan"
)

// beginCreate decides whether a worker may create the agent, and sets what the agent inherits. Nothing that the worker
// says about owners, labels and annotations is kept. Other callers are not concerned.
func (r *Resource) beginCreate(ctx context.Context, a *v1alpha1.Agent, _ bool) (context.Context, func(bool), error) {
	if r.o.Caller == nil {
		return ctx, nil, nil
	}
	maker, err := r.o.Caller(ctx)
	if err != nil || maker == nil {
		return ctx, nil, err
	}
	refuse := func(format string, args ...any) error {
		return apierrors.NewForbidden(v1alpha1.Resource("agents"), a.Name, fmt.Errorf(format, args...))
	}
	if maker.DeletionTimestamp != nil {
		return nil, nil, refuse("task %q is being deleted", maker.Name)
	}
	coordinator, err := r.agentOf(ctx, maker)
	if err != nil {
		return nil, nil, err
	}
	a.Namespace = maker.Namespace // the guard has compared it with that of the request
	if refused := plan.CheckMade(maker, coordinator, a); refused != nil {
		if refused.Field != "" {
			return nil, nil, refuse("%s: %s", refused.Field, refused.Message)
		}
		return nil, nil, refuse("%s", refused.Message)
	}
	plan.CompleteMade(maker, coordinator, a)
	r.making.Lock()
	made, err := r.list(request.WithNamespace(ctx, maker.Namespace), func(a *v1alpha1.Agent) bool { return plan.MadeBy(a, maker) })
	if err == nil && len(made) >= plan.MaxMadeAgents {
		err = refuse("the task has created %d agents that exist; delete one first", len(made))
	}
	if err != nil {
		r.making.Unlock()
		return nil, nil, err
	}
	return ctx, func(bool) { r.making.Unlock() }, nil
}

// agentOf reads the agent of a task; nil if it has none or it does not exist.
func (r *Resource) agentOf(ctx context.Context, t *v1alpha1.Task) (*v1alpha1.Agent, error) {
	if t.Spec.AgentRef == nil {
		return nil, nil //nolint:nilnil // none
	}
	key := t.Spec.AgentRef.In(t.Namespace)
	a, err := r.Get(request.WithNamespace(ctx, key.Namespace), key.Name)
	if apierrors.IsNotFound(err) {
		return nil, nil //nolint:nilnil // none
	}
	return a, err
}

// list returns the agents of the context's namespace that are wanted, or of all namespaces if it has none, whatever the
// caller may read.
func (r *Resource) list(ctx context.Context, wanted func(*v1alpha1.Agent) bool) ([]*v1alpha1.Agent, error) {
	obj, err := r.List(request.WithUser(ctx, nil), &metainternalversion.ListOptions{})
	if err != nil {
		return nil, err
	}
	list, ok := obj.(*v1alpha1.AgentList)
	if !ok {
		return nil, fmt.Errorf("a list of agents is %T", obj)
	}
	var found []*v1alpha1.Agent
	for i := range list.Items {
		if a := &list.Items[i]; wanted(a) {
			found = append(found, a)
		}
	}
	return found, nil
}
