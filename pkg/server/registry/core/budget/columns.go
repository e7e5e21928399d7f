// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package budget

import (
	"strings"
	"time"

	"github.com/platform-ai/platform/pkg/apis/core/v1alpha1"
	"github.com/platform-ai/platform/pkg/server/registry/resource"
)

func columns() []resource.Column[*v1alpha1.Budget] {
	return []resource.Column[*v1alpha1.Budget]{
		{Name: "Spent", Type: "integer", Description: "Tokens that were used in this window; with perIdentity those of the busiest identity.", Value: func(b *v1alpha1.Budget) any { return b.Status.Spent }},
		{Name: "Reserved", Type: "integer", Description: "Tokens that requests which have not ended may still use.", Value: func(b *v1alpha1.Budget) any { return b.Status.Reserved }},
		{Name: "Limit", Type: "integer", Description: "Tokens that may be used in one window.", Value: func(b *v1alpha1.Budget) any { return b.Status.Limit }},
		{Name: "Renews", Description: "When the next window begins.", Value: func(b *v1alpha1.Budget) any { return renews(b) }},
		{Name: "Window", Wide: true, Description: "The period after which the budget begins again.", Value: func(b *v1alpha1.Budget) any { return string(b.Spec.Window) }},
		{Name: "Per Identity", Type: "boolean", Wide: true, Description: "Whether each identity has the limit for itself.", Value: func(b *v1alpha1.Budget) any { return b.Spec.PerIdentity }},
		{Name: "Requesters", Wide: true, Description: "Whose requests count; empty for everybody's.", Value: func(b *v1alpha1.Budget) any { return requesters(b) }},
	}
}

func renews(b *v1alpha1.Budget) string {
	if b.Status.RenewsAt == nil {
		return ""
	}
	return b.Status.RenewsAt.UTC().Format(time.RFC3339)
}

func requesters(b *v1alpha1.Budget) string {
	if b.Spec.Selector == nil {
		return ""
	}
	names := make([]string, 0, len(b.Spec.Selector.Requesters))
	for _, r := range b.Spec.Selector.Requesters {
		names = append(names, string(r.Kind)+"/"+r.Name)
	}
	return strings.Join(names, ",")
}
