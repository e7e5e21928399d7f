// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package usagereport

import (
	"context"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apiserver/pkg/authorization/authorizer"

	"github.com/platform-ai/platform/pkg/apis/core/v1alpha1"
	"github.com/platform-ai/platform/pkg/server/registry/guard"
)

// authorize requires the rights that all usage of a namespace needs. What names the resource that was asked for.
func (r *Resource) authorize(ctx context.Context, what, namespace string) error {
	for _, kind := range []string{"tasks", "repositorymonitors", "sessions"} {
		ok, err := r.may(ctx, "list", kind, namespace, "")
		if err != nil {
			return err
		}
		if !ok {
			return apierrors.NewForbidden(v1alpha1.Resource(what), "", fmt.Errorf(
				"usage needs the right to list tasks, repositorymonitors and sessions of the namespace %q, and the caller may not list %s", namespace, kind))
		}
	}
	return nil
}

// scopes returns what a transaction token needs: usage shows tasks, sessions and what monitors asked for.
func scopes(authorizer.Attributes) (families []string, ok bool) {
	return []string{"tasks:list", "monitors:read", "sessions:read"}, true
}

// may asks the authorizer about the caller.
func (r *Resource) may(ctx context.Context, verb, kind, namespace, name string) (bool, error) {
	return guard.May(ctx, r.o.Authorizer, authorizer.AttributesRecord{Verb: verb, Namespace: namespace, Resource: kind, Name: name})
}

// nowhere is the UID of no namespace.
const nowhere = "-"

// identity returns the UID of a namespace. Records of an earlier namespace of the name are not shown. If gone is not
// empty, it is the UID of a namespace that does not exist; otherwise such a namespace is an error.
func (r *Resource) identity(namespace, gone string) (string, error) {
	if r.namespaces == nil {
		return "", nil
	}
	ns, err := r.namespaces.Get(namespace)
	if apierrors.IsNotFound(err) && gone != "" {
		return gone, nil
	}
	if err != nil {
		return "", apierrors.NewServiceUnavailable(fmt.Sprintf("the identity of the namespace %q cannot be read; try again", namespace))
	}
	return string(ns.UID), nil
}
