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
	"github.com/platform-ai/platform/pkg/registry/rule"
)

// onlyOwnTask holds a worker to its own task. RBAC cannot say that: a worker's
// credential names its task, and every worker has the same role.
func onlyOwnTask(ctx context.Context, t *v1alpha1.Task) error {
	user, ok := request.UserFrom(ctx)
	if !ok {
		return apierrors.NewForbidden(v1alpha1.Resource("tasks"), t.Name, errors.New("the caller is not known"))
	}
	own := map[string]string{
		v1alpha1.ExtraTaskNamespace: t.Namespace, v1alpha1.ExtraTaskName: t.Name, v1alpha1.ExtraTaskUID: string(t.UID),
	}
	for key, have := range rule.TaskOf(user) {
		if have != own[key] {
			return apierrors.NewForbidden(v1alpha1.Resource("tasks"), t.Name, errors.New("the caller's credential is for another task"))
		}
	}
	return nil
}

// controller reports whether the caller may write what only controllers write.
func (r *Resource) controller(ctx context.Context, namespace string) (bool, error) {
	user, ok := request.UserFrom(ctx)
	if !ok {
		return false, nil
	}
	decision, _, err := r.authorizer.Authorize(ctx, authorizer.AttributesRecord{
		User:            user,
		Verb:            "create",
		Namespace:       namespace,
		APIGroup:        v1alpha1.GroupName,
		APIVersion:      v1alpha1.SchemeGroupVersion.Version,
		Resource:        "executionevents",
		Subresource:     v1alpha1.ResourceExecutionEventsControlled,
		ResourceRequest: true,
	})
	if err != nil && decision != authorizer.DecisionAllow {
		return false, apierrors.NewInternalError(fmt.Errorf("authorize controller-owned events: %w", err))
	}
	return decision == authorizer.DecisionAllow, nil
}
