// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package provider

import (
	"context"

	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/platform-ai/platform/pkg/apis/core/v1alpha1"
	"github.com/platform-ai/platform/pkg/llm/vendors"
	"github.com/platform-ai/platform/pkg/server/registry/rule"
	"github.com/platform-ai/platform/pkg/usage"
)

func validate(_ context.Context, p *v1alpha1.Provider) field.ErrorList {
	path := field.NewPath("spec")
	// Paths are appended to baseURL, so it must not have a query.
	errs := rule.HTTP().Check(p.Spec.BaseURL, path.Child("baseURL"))
	errs = append(errs, vendors.Check(&p.Spec, path)...)
	return append(errs, usage.CheckPrices(p.Spec.Prices, path.Child("prices"))...)
}
