// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package guard

import (
	"context"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apiserver/pkg/authorization/authorizer"
	"k8s.io/apiserver/pkg/endpoints/request"

	"github.com/platform-ai/platform/pkg/apis/core/v1alpha1"
)

// May asks an authorizer whether the caller of a request may do something with a resource of this API group. what has the verb
// and the names of namespace, resource and object; the rest is added. A request without a caller may do nothing. The error is an
// API error.
func May(ctx context.Context, a authorizer.Authorizer, what authorizer.AttributesRecord) (bool, error) {
	user, ok := request.UserFrom(ctx)
	if !ok {
		return false, nil
	}
	what.User, what.APIGroup, what.APIVersion, what.ResourceRequest = user, v1alpha1.GroupName, v1alpha1.SchemeGroupVersion.Version, true
	decision, _, err := a.Authorize(ctx, what)
	if err != nil && decision != authorizer.DecisionAllow {
		return false, apierrors.NewInternalError(fmt.Errorf("authorize %s of %s: %w", what.Verb, what.Resource, err))
	}
	return decision == authorizer.DecisionAllow, nil
}

// MayControl reports whether the caller of a request may write what only controllers write: it needs create on
// executionevents/controlled. A worker may not, whatever roles it has.
func MayControl(ctx context.Context, a authorizer.Authorizer, namespace string) (bool, error) {
	user, ok := request.UserFrom(ctx)
	if !ok || IsWorker(user) {
		return false, nil
	}
	return May(ctx, a, authorizer.AttributesRecord{
		Verb: "create", Namespace: namespace,
		Resource: "executionevents", Subresource: v1alpha1.ResourceExecutionEventsControlled,
	})
}
