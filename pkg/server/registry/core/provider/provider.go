// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

// Package provider serves providers: accounts at model vendors.
package provider

import (
	"github.com/platform-ai/platform/pkg/apis/core/v1alpha1"
	"github.com/platform-ai/platform/pkg/server/auth/external"
	"github.com/platform-ai/platform/pkg/server/registry/resource"
)

// Definition returns the resource providers.
func Definition(stored *resource.Stored[*v1alpha1.Provider], guard resource.Guard[*v1alpha1.Provider]) *resource.Definition[*v1alpha1.Provider] {
	return &resource.Definition[*v1alpha1.Provider]{
		Resource:   v1alpha1.SchemeGroupVersion.WithResource("providers"),
		Kind:       "Provider",
		Singular:   "provider",
		Roles:      resource.Roles{Readers: resource.Users(resource.Worker), Writers: resource.Writers()},
		Scopes:     &external.Scopes{Read: "providers:use"},
		ShortNames: []string{"prov"},
		Categories: []string{"platform"},
		Fields: []resource.Field[*v1alpha1.Provider]{
			{Path: "spec.type", Value: func(p *v1alpha1.Provider) string { return string(p.Spec.Type) }},
			{Path: "spec.secretRef.name", Value: func(p *v1alpha1.Provider) string { return p.Spec.SecretRef.Name }},
		},
		Columns: columns(),
		Stored:  stored,
		Guard:   guard,
		Shape:   resource.Kept[*v1alpha1.Provider]{Validate: validate, Reduce: reduce},
	}
}
