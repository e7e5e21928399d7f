// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package provider

import (
	"context"
	"fmt"

	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/platform-ai/platform/pkg/apis/core/v1alpha1"
	"github.com/platform-ai/platform/pkg/server/registry/rule"
)

func validate(_ context.Context, p *v1alpha1.Provider) field.ErrorList {
	path := field.NewPath("spec")
	// Paths are appended to baseURL, so it has no query.
	errs := rule.HTTP().Check(p.Spec.BaseURL, path.Child("baseURL"))
	azure := p.Spec.Type == v1alpha1.ProviderAzureOpenAI
	if azure && p.Spec.BaseURL == "" {
		errs = append(errs, field.Required(path.Child("baseURL"), "type azure-openai needs it"))
	}
	if azure && p.Spec.Azure == nil {
		errs = append(errs, field.Required(path.Child("azure"), "type azure-openai needs it"))
	}
	if !azure && p.Spec.Azure != nil {
		errs = append(errs, field.Forbidden(path.Child("azure"), fmt.Sprintf("is for type azure-openai, not for %s", p.Spec.Type)))
	}
	return errs
}
