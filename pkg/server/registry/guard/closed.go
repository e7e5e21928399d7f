// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package guard

import (
	"context"

	metainternalversion "k8s.io/apimachinery/pkg/apis/meta/internalversion"

	"github.com/platform-ai/platform/pkg/apis/core/v1alpha1"
	"github.com/platform-ai/platform/pkg/server/registry/resource"
)

// Closed is the guard of a kind that no worker reads or writes, such as one that controllers own. Name is its resource.
func Closed[T resource.Object](w *Workers, name string) resource.Guard[T] {
	return &rule[T]{
		w: w, resource: v1alpha1.Resource(name),
		object: func(context.Context, *scope, resource.Access, T) error { return errNotAWorkers },
		narrow: func(context.Context, *scope, resource.Access, *metainternalversion.ListOptions) (func(T) bool, error) {
			return nil, errNotAWorkers
		},
	}
}

// Close gives Closed to each resource whose Definition says nothing about workers, and returns the resources.
func Close(w *Workers, resources []resource.Resource) []resource.Resource {
	for _, r := range resources {
		r.CloseTo(Closed[resource.Object](w, r.GroupVersionResource().Resource))
	}
	return resources
}
