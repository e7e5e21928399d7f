// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

// Package agentruntime serves agent runtimes: registrations of coding-agent runtimes that run elsewhere.
package agentruntime

import (
	"context"

	"github.com/platform-ai/platform/pkg/apis/core/v1alpha1"
	"github.com/platform-ai/platform/pkg/server/auth/external"
	"github.com/platform-ai/platform/pkg/server/registry/resource"
	"github.com/platform-ai/platform/pkg/support"
)

// Definition returns the resource agentruntimes.
func Definition() resource.Resource {
	return &resource.Definition[*v1alpha1.AgentRuntime]{
		Resource:   v1alpha1.SchemeGroupVersion.WithResource("agentruntimes"),
		Kind:       "AgentRuntime",
		Singular:   "agentruntime",
		Roles:      resource.Roles{Readers: resource.Users(), Writers: []resource.Role{resource.Operator}},
		Scopes:     &external.Scopes{Read: "agents:read"},
		ShortNames: []string{"art"},
		Categories: []string{"platform"},
		Columns:    columns(),
		Shape: resource.Kept[*v1alpha1.AgentRuntime]{
			Validate: validate, Warnings: func(_ context.Context, r, _ *v1alpha1.AgentRuntime) []string {
				return support.Warnings(support.AgentRuntime(&r.Spec))
			},
		},
	}
}

func columns() []resource.Column[*v1alpha1.AgentRuntime] {
	return []resource.Column[*v1alpha1.AgentRuntime]{
		{Name: "Ready", Description: "Whether the runtime can be used.", Value: func(r *v1alpha1.AgentRuntime) any { return r.Status.Ready }},
		{Name: "Contract", Description: "The contract between controller and runtime.", Value: func(r *v1alpha1.AgentRuntime) any { return string(r.Spec.ContractVersion) }},
		{Name: "Endpoint", Description: "Where the runtime is.", Value: func(r *v1alpha1.AgentRuntime) any { return r.Spec.Deployment.Endpoint }},
		{Name: "Message", Wide: true, Description: "The state, for people.", Value: func(r *v1alpha1.AgentRuntime) any { return r.Status.Message }},
	}
}
