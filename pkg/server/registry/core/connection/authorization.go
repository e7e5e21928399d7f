// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package connection

import (
	"context"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apiserver/pkg/endpoints/request"

	"github.com/platform-ai/platform/pkg/apis/core/v1alpha1"
	"github.com/platform-ai/platform/pkg/server/auth/external"
	"github.com/platform-ai/platform/pkg/server/registry/resource"
)

// authorizations returns the resource connectionauthorizations.
func (o *Options) authorizations() resource.Resource {
	return &resource.Definition[*v1alpha1.ConnectionAuthorization]{
		Resource: v1alpha1.SchemeGroupVersion.WithResource("connectionauthorizations"),
		Kind:     "ConnectionAuthorization",
		Singular: "connectionauthorization",
		Roles:    resource.Roles{Creators: []resource.Role{resource.Person}},
		Scopes:   &external.Scopes{Of: connectionScopes},
		Shape:    resource.Action[*v1alpha1.ConnectionAuthorization]{Create: o.connect},
	}
}

// connect connects an account of the caller.
func (o *Options) connect(ctx context.Context, a *v1alpha1.ConnectionAuthorization) (*v1alpha1.ConnectionAuthorization, error) {
	if err := o.byREST(ctx, "connectionauthorizations", ""); err != nil {
		return nil, err
	}
	who, err := person(ctx, "connectionauthorizations", "")
	if err != nil {
		return nil, err
	}
	if a.Spec.ProviderRef == nil {
		return nil, apierrors.NewBadRequest("spec.providerRef: is required")
	}
	status, err := o.Hub.Connect(ctx, request.NamespaceValue(ctx), who, a.Spec.ProviderRef.Name, a.Spec.Mode, resource.IsDryRun(ctx))
	if err != nil {
		return nil, err
	}
	return answer(a, status), nil
}

// answer fills an authorization in.
func answer(a *v1alpha1.ConnectionAuthorization, status *v1alpha1.ConnectionAuthorizationStatus) *v1alpha1.ConnectionAuthorization {
	a.Status = *status
	a.Name, a.Namespace = status.Connection.Name, status.Connection.Namespace
	return a
}
