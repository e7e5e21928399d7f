// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package task

import (
	"context"
	"errors"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apiserver/pkg/authorization/authorizer"
	restclient "k8s.io/client-go/rest"

	"github.com/platform-ai/platform/pkg/apis/core/v1alpha1"
	"github.com/platform-ai/platform/pkg/server/registry/guard"
)

// callers checks the rights of callers that a request needs besides the one to send it, and sends requests on behalf of callers.
type callers struct {
	authorizer authorizer.Authorizer
	loopback   *restclient.Config // may be nil
}

// controller reports whether the caller may write what only controllers write.
func (r callers) controller(ctx context.Context, namespace string) (bool, error) {
	return guard.MayControl(ctx, r.authorizer, namespace)
}

// mayFork requires the verb get on the source of a fork, because the fork receives the history and the spec of the
// source and belongs to the caller.
func (r callers) mayFork(ctx context.Context, source *v1alpha1.Task) error {
	return r.mayGet(ctx, authorizer.AttributesRecord{Namespace: source.Namespace, Resource: "tasks", Name: source.Name},
		"a caller who forks a task needs the right to get it")
}

// mayCopySession returns an error unless the caller may read the session of a fork's source, which the fork's own session
// begins with.
func (r callers) mayCopySession(ctx context.Context, namespace, session string) error {
	return r.mayGet(ctx, authorizer.AttributesRecord{Namespace: namespace, Resource: "sessions", Subresource: "transcript", Name: session},
		"a fork copies the messages of this session, so its caller needs the right to get sessions/transcript; with session: Shared nothing is copied")
}

// mayGet returns a Forbidden with the reason unless the caller may get what a names.
func (r callers) mayGet(ctx context.Context, a authorizer.AttributesRecord, reason string) error {
	a.Verb = "get"
	ok, err := guard.May(ctx, r.authorizer, a)
	if err != nil {
		return err
	}
	if !ok {
		return apierrors.NewForbidden(v1alpha1.Resource(a.Resource), a.Name, errors.New(reason))
	}
	return nil
}
