// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

// Package tool serves tools: HTTP endpoints and MCP servers that models call.
package tool

import (
	"github.com/platform-ai/platform/pkg/apis/core/v1alpha1"
	"github.com/platform-ai/platform/pkg/registry/resource"
)

// Definition is the resource tools.
func Definition() resource.Resource {
	return &resource.Definition[*v1alpha1.Tool]{
		Resource:   v1alpha1.SchemeGroupVersion.WithResource("tools"),
		Kind:       "Tool",
		Singular:   "tool",
		ShortNames: []string{"tl"},
		Categories: []string{"platform"},
		Fields: []resource.Field[*v1alpha1.Tool]{
			{Path: "spec.http.authSecretRef.name", Value: authSecret},
		},
		Columns: columns(),
		Shape:   resource.Kept[*v1alpha1.Tool]{Validate: validate},
	}
}

func authSecret(t *v1alpha1.Tool) string {
	if t.Spec.HTTP == nil || t.Spec.HTTP.AuthSecretRef == nil {
		return ""
	}
	return t.Spec.HTTP.AuthSecretRef.Name
}
