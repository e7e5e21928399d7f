// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package skill

import (
	"strings"

	"github.com/platform-ai/platform/pkg/apis/core/v1alpha1"
	"github.com/platform-ai/platform/pkg/server/registry/resource"
)

func columns() []resource.Column[*v1alpha1.Skill] {
	return []resource.Column[*v1alpha1.Skill]{
		{Name: "Phase", Description: "Ready or Error.", Value: func(s *v1alpha1.Skill) any { return string(s.Status.Phase) }},
		{Name: "Version", Description: "The author's version.", Value: func(s *v1alpha1.Skill) any { return s.Spec.Version }},
		{Name: "Description", Description: "What the skill is good for.", Value: func(s *v1alpha1.Skill) any { return s.Spec.Description }},
		{Name: "Display Name", Wide: true, Description: "The name for people.", Value: func(s *v1alpha1.Skill) any { return s.Spec.DisplayName }},
		{Name: "Author", Wide: true, Description: "Who wrote the skill.", Value: func(s *v1alpha1.Skill) any { return s.Spec.Author }},
		{Name: "Tags", Wide: true, Description: "Words to find it by.", Value: func(s *v1alpha1.Skill) any { return strings.Join(s.Spec.Tags, ",") }},
	}
}
