// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package budget

import (
	"strconv"
	"strings"
	"time"

	"github.com/platform-ai/platform/pkg/apis/core/v1alpha1"
	"github.com/platform-ai/platform/pkg/server/registry/resource"
)

func columns() []resource.Column[*v1alpha1.Budget] {
	return []resource.Column[*v1alpha1.Budget]{
		{Name: "Spent", Description: "Tokens or money that were used in this window; with perIdentity those of the busiest identity.", Value: func(b *v1alpha1.Budget) any {
			return amount(b, b.Status.Spent, func(m *v1alpha1.BudgetMoney) string { return m.Spent })
		}},
		{Name: "Reserved", Description: "What requests that have not ended may still use.", Value: func(b *v1alpha1.Budget) any {
			return amount(b, b.Status.Reserved, func(m *v1alpha1.BudgetMoney) string { return m.Reserved })
		}},
		{Name: "Limit", Description: "What may be used in one window.", Value: func(b *v1alpha1.Budget) any {
			return amount(b, b.Status.Limit, func(m *v1alpha1.BudgetMoney) string { return m.Limit + " " + m.Currency })
		}},
		{Name: "Renews", Description: "When the next window begins.", Value: func(b *v1alpha1.Budget) any { return renews(b) }},
		{Name: "Window", Wide: true, Description: "The period after which the budget begins again.", Value: func(b *v1alpha1.Budget) any { return string(b.Spec.Window) }},
		{Name: "Per Identity", Type: "boolean", Wide: true, Description: "Whether each identity has the limit for itself.", Value: func(b *v1alpha1.Budget) any { return b.Spec.PerIdentity }},
		{Name: "Requesters", Wide: true, Description: "Whose requests count; empty for everybody's.", Value: func(b *v1alpha1.Budget) any { return requesters(b) }},
	}
}

// amount shows tokens, or money if the limit is one of cost.
func amount(b *v1alpha1.Budget, tokens int64, cost func(*v1alpha1.BudgetMoney) string) string {
	if b.Status.Cost != nil {
		return cost(b.Status.Cost)
	}
	return strconv.FormatInt(tokens, 10)
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
