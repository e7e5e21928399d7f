// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package task

import (
	"context"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/endpoints/request"
	"k8s.io/client-go/rest"

	"github.com/platform-ai/platform/pkg/generated/clientset/versioned"
)

// asCaller returns a client of this server that acts as the caller of the
// request. What the server does for the caller is then authorized, admitted and
// audited like the caller's own requests.
func (r callers) asCaller(ctx context.Context) (versioned.Interface, error) {
	caller, ok := request.UserFrom(ctx)
	if !ok {
		return nil, apierrors.NewUnauthorized("the caller is not known")
	}
	return r.client(caller)
}

// client returns a client of this server that acts as the given user or, if as
// is nil, as the server itself.
func (r callers) client(as user.Info) (versioned.Interface, error) {
	if r.loopback == nil {
		return nil, apierrors.NewServiceUnavailable("the server has no client of itself")
	}
	c := rest.CopyConfig(r.loopback)
	if as != nil {
		c.Impersonate = rest.ImpersonationConfig{UserName: as.GetName(), UID: as.GetUID(), Groups: as.GetGroups(), Extra: as.GetExtra()}
	}
	client, err := versioned.NewForConfig(c)
	if err != nil {
		return nil, fmt.Errorf("client of this server: %w", err)
	}
	return client, nil
}
