// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package task

import (
	"context"
	"errors"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apiserver/pkg/authorization/authorizer"
	"k8s.io/apiserver/pkg/endpoints/request"

	"github.com/platform-ai/platform/pkg/apis/core/v1alpha1"
	"github.com/platform-ai/platform/pkg/server/registry/guard"
)

// controller reports whether the caller may write what only controllers write. A worker may not, whatever roles it
// has.
func (r *Resource) controller(ctx context.Context, namespace string) (bool, error) {
	user, ok := request.UserFrom(ctx)
	if !ok || guard.IsWorker(user) {
		return false, nil
	}
	return r.may(ctx, authorizer.AttributesRecord{
		User: user, Verb: "create", Namespace: namespace,
		Resource: "executionevents", Subresource: v1alpha1.ResourceExecutionEventsControlled,
	})
}

// mayFork requires the verb get on the source of a fork, because the fork receives the history and the spec of the
// source and belongs to the caller.
func (r *Resource) mayFork(ctx context.Context, source *v1alpha1.Task) error {
	user, ok := request.UserFrom(ctx)
	if ok {
		var err error
		ok, err = r.may(ctx, authorizer.AttributesRecord{User: user, Verb: "get", Namespace: source.Namespace, Resource: "tasks", Name: source.Name})
		if err != nil {
			return err
		}
	}
	if !ok {
		return apierrors.NewForbidden(v1alpha1.Resource("tasks"), source.Name, errors.New("a caller who forks a task needs the right to get it"))
	}
	return nil
}

// may asks the authorizer about resources of this API group.
func (r *Resource) may(ctx context.Context, a authorizer.AttributesRecord) (bool, error) {
	a.APIGroup, a.APIVersion, a.ResourceRequest = v1alpha1.GroupName, v1alpha1.SchemeGroupVersion.Version, true
	decision, _, err := r.authorizer.Authorize(ctx, a)
	if err != nil && decision != authorizer.DecisionAllow {
		return false, apierrors.NewInternalError(fmt.Errorf("authorize %s of %s: %w", a.Verb, a.Resource, err))
	}
	return decision == authorizer.DecisionAllow, nil
}
