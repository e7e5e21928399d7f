// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package runtimepool

import (
	"context"

	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/platform-ai/platform/pkg/apis/core/v1alpha1"
	"github.com/platform-ai/platform/pkg/server/registry/rule"
)

func validate(_ context.Context, p *v1alpha1.RuntimePool) field.ErrorList {
	path := field.NewPath("spec", "runtime")
	errs := rule.PinnedImage(p.Spec.Runtime.Image, path.Child("image"))
	errs = append(errs, rule.Profile(&p.Spec.Runtime.Profile, path.Child("profile"))...)
	if c := p.Spec.Capacity; c != nil && c.MaxResidentSessions != nil && c.MaxRunningPrompts != nil && *c.MaxRunningPrompts > *c.MaxResidentSessions {
		errs = append(errs, field.Invalid(field.NewPath("spec", "capacity", "maxRunningPrompts"), *c.MaxRunningPrompts, "must not exceed maxResidentSessions, since each prompt belongs to a session"))
	}
	return errs
}
