// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package repositorymonitor

import (
	"context"

	"k8s.io/apimachinery/pkg/runtime"

	"github.com/platform-ai/platform/pkg/apis/core/v1alpha1"
	"github.com/platform-ai/platform/pkg/codehost"
	"github.com/platform-ai/platform/pkg/server/registry/resource"
)

// links serves GET of links: the links of tasks of the namespace to pull requests of the monitor's repository that are not known to be
// merged, those that were looked at the longest time ago first. Only so many are returned, because a controller looks at few at a time.
func (r *Resource) links(ctx context.Context, p resource.Parent[*v1alpha1.RepositoryMonitor]) (runtime.Object, error) {
	if r.o.Links == nil {
		return &v1alpha1.UsageLinkPage{Links: []v1alpha1.UsageLinkSpec{}}, nil
	}
	at, err := codehost.ParseAddress(p.Object.Spec.RepoURL)
	if err != nil {
		return nil, err // the address was checked when it was written
	}
	found, err := r.o.Links(ctx, p.Object.Namespace, at.Owner+"/"+at.Name)
	if err != nil {
		return nil, err
	}
	found.Name, found.Namespace = p.Object.Name, p.Object.Namespace
	return found, nil
}
