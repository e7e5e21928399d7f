// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

// Package runtimepool serves runtime pools: instances of coding-agent runtimes. A controller owns them, and people read them.
package runtimepool

import (
	"context"
	"fmt"

	"github.com/platform-ai/platform/pkg/apis/core/v1alpha1"
	"github.com/platform-ai/platform/pkg/server/auth/external"
	"github.com/platform-ai/platform/pkg/server/registry/resource"
	"github.com/platform-ai/platform/pkg/support"
)

// Definition returns the resource runtimepools.
func Definition() resource.Resource {
	return &resource.Definition[*v1alpha1.RuntimePool]{
		Resource:   v1alpha1.SchemeGroupVersion.WithResource("runtimepools"),
		Kind:       "RuntimePool",
		Singular:   "runtimepool",
		Roles:      resource.Roles{Readers: resource.Users()},
		Scopes:     &external.Scopes{Read: "agents:read"},
		ShortNames: []string{"rtp"},
		Categories: []string{"platform"},
		Fields: []resource.Field[*v1alpha1.RuntimePool]{
			{Path: "status.lifecycle", Value: func(p *v1alpha1.RuntimePool) string { return string(p.Status.Lifecycle) }},
		},
		Columns: columns(),
		Shape: resource.Kept[*v1alpha1.RuntimePool]{
			Validate: validate, Warnings: func(_ context.Context, p, _ *v1alpha1.RuntimePool) []string {
				return support.Warnings(support.RuntimePool(&p.Spec))
			},
		},
	}
}

func columns() []resource.Column[*v1alpha1.RuntimePool] {
	return []resource.Column[*v1alpha1.RuntimePool]{
		{Name: "Lifecycle", Description: "Where the pool is.", Value: func(p *v1alpha1.RuntimePool) any { return string(p.Status.Lifecycle) }},
		{Name: "Admission", Description: "Whether the pool takes work.", Value: func(p *v1alpha1.RuntimePool) any { return string(p.Status.Admission) }},
		{Name: "Sessions", Description: "Sessions that the instance holds, of how many it may.", Value: sessions},
		{Name: "Model", Wide: true, Description: "The model of the runtime.", Value: func(p *v1alpha1.RuntimePool) any { return p.Spec.Runtime.Profile.Model }},
		{Name: "Image", Wide: true, Description: "The image of the runtime.", Value: func(p *v1alpha1.RuntimePool) any { return p.Spec.Runtime.Image }},
	}
}

func sessions(p *v1alpha1.RuntimePool) any {
	use, limits := p.Status.Capacity, p.Spec.Capacity
	if use == nil || limits == nil || limits.MaxResidentSessions == nil {
		return ""
	}
	return fmt.Sprintf("%d/%d", use.Resident, *limits.MaxResidentSessions)
}
