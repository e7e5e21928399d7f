// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

// Package tool serves tools: HTTP endpoints and MCP servers that models call.
package tool

import (
	"context"
	"slices"

	"k8s.io/apimachinery/pkg/api/equality"

	"github.com/platform-ai/platform/pkg/apis/core/v1alpha1"
	"github.com/platform-ai/platform/pkg/server/auth/external"
	"github.com/platform-ai/platform/pkg/server/registry/resource"
	"github.com/platform-ai/platform/pkg/support"
)

// Definition returns the resource tools.
func Definition(stored *resource.Stored[*v1alpha1.Tool], guard resource.Guard[*v1alpha1.Tool]) *resource.Definition[*v1alpha1.Tool] {
	return &resource.Definition[*v1alpha1.Tool]{
		Resource:   v1alpha1.SchemeGroupVersion.WithResource("tools"),
		Kind:       "Tool",
		Singular:   "tool",
		Roles:      resource.Roles{Readers: resource.Users(resource.Worker), Writers: resource.Writers()},
		Scopes:     &external.Scopes{Read: "tools:read"},
		ShortNames: []string{"tl"},
		Categories: []string{"platform"},
		Fields: []resource.Field[*v1alpha1.Tool]{
			{Path: "spec.http.authSecretRef.name", Value: authSecret},
		},
		Columns: columns(),
		Stored:  stored,
		Guard:   guard,
		Shape:   resource.Kept[*v1alpha1.Tool]{Begin: checkName, Validate: validate, Warnings: warnings},
	}
}

func authSecret(t *v1alpha1.Tool) string {
	if t.Spec.HTTP == nil || t.Spec.HTTP.AuthSecretRef == nil {
		return ""
	}
	return t.Spec.HTTP.AuthSecretRef.Name
}

// warnings describe which settings this version does not support.
func warnings(_ context.Context, o, old *v1alpha1.Tool) []string {
	if old != nil && equality.Semantic.DeepEqual(o.Spec, old.Spec) {
		return nil
	}
	return slices.Concat(support.Warnings(support.Tool(&o.Spec)), support.IdleOfTool(&o.Spec))
}
