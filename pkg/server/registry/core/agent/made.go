// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"context"
	"errors"
	"fmt"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metainternalversion "k8s.io/apimachinery/pkg/apis/meta/internalversion"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apiserver/pkg/endpoints/request"
	"k8s.io/apiserver/pkg/registry/rest"
	"k8s.io/klog/v2"

	"github.com/platform-ai/platform/pkg/apis/core/v1alpha1"
	"github.com/platform-ai/platform/pkg/plan"
	"github.com/platform-ai/platform/pkg/server/registry/resource"
)

// Storage builds the storage. It also removes, once and in the background, agents whose root task was deleted while
// the server was not running.
func (r *Resource) Storage(ctx context.Context, c resource.Config) (map[string]rest.Storage, error) {
	paths, err := r.Definition.Storage(ctx, c)
	if err != nil {
		return nil, err
	}
	agents, ok := paths["agents"].(store)
	if !ok {
		return nil, fmt.Errorf("resource agents: %T has no list and delete", paths["agents"])
	}
	r.mu.Lock()
	r.agents = agents
	r.mu.Unlock()
	if !c.GarbageCollector {
		go r.sweep(ctx) // ends by itself
	}
	return paths, nil
}

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

func (r *Resource) storage() (store, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.agents == nil {
		return nil, apierrors.NewServiceUnavailable("agents are not served yet")
	}
	return r.agents, nil
}

// list returns the agents of the context's namespace that are wanted, or of all namespaces if it has none, whatever the
// caller may read.
func (r *Resource) list(ctx context.Context, wanted func(*v1alpha1.Agent) bool) ([]*v1alpha1.Agent, error) {
	agents, err := r.storage()
	if err != nil {
		return nil, err
	}
	obj, err := agents.List(request.WithUser(ctx, nil), &metainternalversion.ListOptions{})
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

// TaskDeleted removes the agents of the tree of a root task that was deleted, where no garbage collector does. If a crash
// or a failure prevents that, the next start of the server does it.
func (r *Resource) TaskDeleted(ctx context.Context, t *v1alpha1.Task) {
	err := r.remove(request.WithNamespace(ctx, t.Namespace), func(a *v1alpha1.Agent) bool { return rootOf(a) == t.UID })
	if err != nil {
		klog.FromContext(ctx).Error(err, "Cannot remove the agents of a deleted task; the next start removes them", "task", klog.KObj(t))
	}
}

// TaskOrphaned removes the owner references of the agents of the tree of a root task, whose deletion is to keep them. It is
// called where there is no garbage collector.
func (r *Resource) TaskOrphaned(ctx context.Context, t *v1alpha1.Task) error {
	ctx = request.WithNamespace(ctx, t.Namespace)
	list, err := r.list(ctx, func(a *v1alpha1.Agent) bool { return rootOf(a) == t.UID })
	if err != nil {
		return err
	}
	for _, a := range list {
		_, err := r.UpdateStored(request.WithUser(ctx, nil), a.Name, func(a *v1alpha1.Agent) error {
			a.OwnerReferences = slices.DeleteFunc(a.OwnerReferences, func(o metav1.OwnerReference) bool { return o.UID == t.UID })
			return nil
		})
		if err != nil && !apierrors.IsNotFound(err) {
			return err
		}
	}
	return nil
}

// rootOf returns the UID of the root task that an agent goes with; empty for an agent that no task created.
func rootOf(a *v1alpha1.Agent) types.UID {
	if owner := metav1.GetControllerOfNoCopy(a); owner != nil && a.Annotations[v1alpha1.AnnotationCreatedByUID] != "" {
		return owner.UID
	}
	return ""
}

// sweep removes agents whose root task does not exist.
func (r *Resource) sweep(ctx context.Context) {
	var failed error
	err := r.remove(request.WithNamespace(ctx, ""), func(a *v1alpha1.Agent) bool {
		root := rootOf(a)
		if root == "" || r.o.Task == nil {
			return false
		}
		t, err := r.o.Task(request.WithNamespace(ctx, a.Namespace), metav1.GetControllerOfNoCopy(a).Name)
		if err != nil && !apierrors.IsNotFound(err) {
			failed = err
			return false
		}
		return err != nil || t.UID != root
	})
	if err = errors.Join(err, failed); err != nil && ctx.Err() == nil {
		klog.FromContext(ctx).Error(err, "Cannot remove the agents of deleted tasks; the next start removes them")
	}
}

// remove deletes the agents that are wanted, unless they were replaced meanwhile.
func (r *Resource) remove(ctx context.Context, wanted func(*v1alpha1.Agent) bool) error {
	agents, err := r.storage()
	if err != nil {
		return err
	}
	list, err := r.list(ctx, wanted)
	if err != nil {
		return err
	}
	var errs []error
	for _, a := range list {
		options := &metav1.DeleteOptions{Preconditions: &metav1.Preconditions{UID: &a.UID}}
		_, _, err := agents.Delete(request.WithUser(request.WithNamespace(ctx, a.Namespace), nil), a.Name, rest.ValidateAllObjectFunc, options)
		if err != nil && !apierrors.IsNotFound(err) && !apierrors.IsConflict(err) {
			errs = append(errs, err)
		}
	}
	return errors.Join(errs...)
}
