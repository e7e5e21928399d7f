// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

// Package provider serves providers: accounts at model vendors.
package provider

import (
	"context"

	"k8s.io/apimachinery/pkg/api/equality"

	"github.com/platform-ai/platform/pkg/apis/core/v1alpha1"
	"github.com/platform-ai/platform/pkg/server/registry/resource"
	"github.com/platform-ai/platform/pkg/support"
)

// Definition returns the resource providers.
func Definition(guard resource.Guard[*v1alpha1.Provider]) resource.Resource {
	return &resource.Definition[*v1alpha1.Provider]{
		Resource:   v1alpha1.SchemeGroupVersion.WithResource("providers"),
		Kind:       "Provider",
		Singular:   "provider",
		ShortNames: []string{"prov"},
		Categories: []string{"platform"},
		Fields: []resource.Field[*v1alpha1.Provider]{
			{Path: "spec.type", Value: func(p *v1alpha1.Provider) string { return string(p.Spec.Type) }},
			{Path: "spec.secretRef.name", Value: func(p *v1alpha1.Provider) string { return p.Spec.SecretRef.Name }},
		},
		Columns: columns(),
		Guard:   guard,
		Shape:   resource.Kept[*v1alpha1.Provider]{Validate: validate, Warnings: warnings},
	}
}

// warnings describe which settings this version does not support.
func warnings(_ context.Context, o, old *v1alpha1.Provider) []string {
	if old != nil && equality.Semantic.DeepEqual(o.Spec, old.Spec) {
		return nil
	}
	return support.Warnings(support.Provider(&o.Spec))
}
