// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package skill

import (
	"context"
	"maps"
	"slices"

	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/platform-ai/platform/pkg/apis/core/v1alpha1"
	"github.com/platform-ai/platform/pkg/server/registry/rule"
)

func validate(_ context.Context, s *v1alpha1.Skill) field.ErrorList {
	var errs field.ErrorList
	path := field.NewPath("spec", "content", "files")
	for _, name := range slices.Sorted(maps.Keys(s.Spec.Content.Files)) {
		errs = append(errs, rule.RelativePath(name, path.Key(name))...)
	}
	return errs
}
