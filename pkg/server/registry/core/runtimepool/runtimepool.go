// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

// Package runtimepool serves runtime pools: the capacity for tasks with coding agents. A controller makes them, people read them, and
// administrators change their capacity.
package runtimepool

import (
	"context"
	"fmt"

	"github.com/platform-ai/platform/pkg/agentprogram"
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
				list := support.Warnings(support.RuntimePool(&p.Spec))
				if agentprogram.TypeOf(p) == "" {
					list = append(list, "no task uses this pool: the controller makes the pools that tasks need, with names of their own")
				}
				return list
			},
		},
	}
}

func columns() []resource.Column[*v1alpha1.RuntimePool] {
	return []resource.Column[*v1alpha1.RuntimePool]{
		{Name: "Lifecycle", Description: "Where the pool is.", Value: func(p *v1alpha1.RuntimePool) any { return string(p.Status.Lifecycle) }},
		{Name: "Admission", Description: "Whether the pool takes work.", Value: func(p *v1alpha1.RuntimePool) any { return string(p.Status.Admission) }},
		{Name: "Sessions", Description: "Tasks that hold a place, of how many may.", Value: sessions},
		{Name: "Prompts", Description: "Of these, how many work, of how many may.", Value: prompts},
		{Name: "Queued", Description: "Tasks that wait for a place.", Value: queued},
		{Name: "Model", Wide: true, Description: "The model of the runtime.", Value: func(p *v1alpha1.RuntimePool) any { return p.Spec.Runtime.Profile.Model }},
		{Name: "Image", Wide: true, Description: "The image of the runtime.", Value: func(p *v1alpha1.RuntimePool) any { return p.Spec.Runtime.Image }},
	}
}

func sessions(p *v1alpha1.RuntimePool) any {
	if p.Status.Capacity == nil {
		return ""
	}
	return fmt.Sprintf("%d/%d", p.Status.Capacity.Resident, agentprogram.LimitsOf(p).MaxResidentSessions)
}

func prompts(p *v1alpha1.RuntimePool) any {
	if p.Status.Capacity == nil {
		return ""
	}
	return fmt.Sprintf("%d/%d", p.Status.Capacity.Running, agentprogram.LimitsOf(p).MaxRunningPrompts)
}

func queued(p *v1alpha1.RuntimePool) any {
	if p.Status.Capacity == nil {
		return ""
	}
	return int64(p.Status.Capacity.Queued)
}
