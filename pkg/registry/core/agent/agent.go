// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

// Package agent serves agents: models and coding agents with their instructions.
package agent

import (
	"github.com/platform-ai/platform/pkg/apis/core/v1alpha1"
	"github.com/platform-ai/platform/pkg/registry/resource"
)

// Definition is the resource agents.
func Definition() resource.Resource {
	return &resource.Definition[*v1alpha1.Agent]{
		Resource:   v1alpha1.SchemeGroupVersion.WithResource("agents"),
		Kind:       "Agent",
		Singular:   "agent",
		ShortNames: []string{"ag"},
		Categories: []string{"platform"},
		Fields: []resource.Field[*v1alpha1.Agent]{
			{Path: "spec.providerRef.name", Value: provider},
			{Path: "spec.model.name", Value: model},
		},
		Columns: columns(),
		Shape:   resource.Kept[*v1alpha1.Agent]{Validate: validate},
	}
}

func provider(a *v1alpha1.Agent) string {
	if a.Spec.ProviderRef == nil {
		return ""
	}
	return a.Spec.ProviderRef.Name
}

func model(a *v1alpha1.Agent) string {
	if a.Spec.Model == nil {
		return ""
	}
	return a.Spec.Model.Name
}
