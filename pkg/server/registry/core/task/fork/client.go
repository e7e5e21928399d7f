// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package fork

import (
	"context"
	"errors"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/authorization/authorizer"
	"k8s.io/apiserver/pkg/endpoints/request"
	restclient "k8s.io/client-go/rest"

	"github.com/platform-ai/platform/pkg/apis/core/v1alpha1"
	"github.com/platform-ai/platform/pkg/generated/clientset/versioned"
	"github.com/platform-ai/platform/pkg/server/registry/guard"
)

// asCaller returns a client of this server that acts as the caller of the
// request. What the server does for the caller is then authorized, admitted and
// audited like the caller's own requests.
func (r Forks) asCaller(ctx context.Context) (versioned.Interface, error) {
	caller, ok := request.UserFrom(ctx)
	if !ok {
		return nil, apierrors.NewUnauthorized("the caller is not known")
	}
	return r.client(caller)
}

// client returns a client of this server that acts as the given user or, if as
// is nil, as the server itself.
func (r Forks) client(as user.Info) (versioned.Interface, error) {
	if r.Loopback == nil {
		return nil, apierrors.NewServiceUnavailable("the server has no client of itself")
	}
	c := restclient.CopyConfig(r.Loopback)
	if as != nil {
		c.Impersonate = restclient.ImpersonationConfig{UserName: as.GetName(), UID: as.GetUID(), Groups: as.GetGroups(), Extra: as.GetExtra()}
	}
	client, err := versioned.NewForConfig(c)
	if err != nil {
		return nil, fmt.Errorf("client of this server: %w", err)
	}
	return client, nil
}

// mayFork requires the verb get on the source of a fork, because the fork receives the history and the spec of the
// source and belongs to the caller.
func (r Forks) mayFork(ctx context.Context, source *v1alpha1.Task) error {
	return r.mayGet(ctx, authorizer.AttributesRecord{Namespace: source.Namespace, Resource: "tasks", Name: source.Name},
		"a caller who forks a task needs the right to get it")
}

// mayCopySession returns an error unless the caller may read the session of a fork's source, which the fork's own session
// begins with.
func (r Forks) mayCopySession(ctx context.Context, namespace, session string) error {
	return r.mayGet(ctx, authorizer.AttributesRecord{Namespace: namespace, Resource: "sessions", Subresource: "transcript", Name: session},
		"a fork copies the messages of this session, so its caller needs the right to get sessions/transcript; with session: Shared nothing is copied")
}

// mayGet returns a Forbidden with the reason unless the caller may get what a names.
func (r Forks) mayGet(ctx context.Context, a authorizer.AttributesRecord, reason string) error {
	a.Verb = "get"
	ok, err := guard.May(ctx, r.Authorizer, a)
	if err != nil {
		return err
	}
	if !ok {
		return apierrors.NewForbidden(v1alpha1.Resource(a.Resource), a.Name, errors.New(reason))
	}
	return nil
}
