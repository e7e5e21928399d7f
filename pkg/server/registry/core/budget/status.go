// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package budget

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/clock"

	"github.com/platform-ai/platform/pkg/apis/core/v1alpha1"
	"github.com/platform-ai/platform/pkg/budget"
	"github.com/platform-ai/platform/pkg/storage/spending"
)

// maxIdentities is how many identities a status lists.
const maxIdentities = 20

// accounts computes statuses.
type accounts struct {
	store *spending.Store
	clock clock.PassiveClock
}

// show sets the status.
func (a accounts) show(b *v1alpha1.Budget) {
	now := a.clock.Now()
	start, end := budget.Span(b.Spec.Window, now)
	s := v1alpha1.BudgetStatus{WindowStart: &metav1.Time{Time: start}, RenewsAt: &metav1.Time{Time: end}}
	unit, ok := budget.ChargeOf(b)
	if !ok {
		return // it cannot be stored
	}
	all := a.store.Balances(b.UID)[b.UID]
	for i := range all {
		all[i].Account = all[i].At(b.Spec.Window, now)
	}
	// An account from before perIdentity or the unit was changed no longer counts.
	all = slices.DeleteFunc(all, func(o spending.Balance) bool {
		return (o.Identity != "") != b.Spec.PerIdentity || o.Currency != unit.Currency
	})
	slices.SortFunc(all, func(x, y spending.Balance) int {
		return cmp.Or(cmp.Compare(y.Spent+y.Reserved, x.Spent+x.Reserved), cmp.Compare(x.Identity, y.Identity))
	})
	var busiest spending.Balance
	if len(all) > 0 {
		busiest = all[0]
		if !all[0].Start.IsZero() { // it is later than that of a clock that went back, or of a window that was changed
			s.WindowStart.Time = all[0].Start
		}
	}
	if b.Spec.PerIdentity {
		for _, o := range all[:min(len(all), maxIdentities)] {
			one := v1alpha1.BudgetIdentity{Name: o.Identity, Spent: o.Spent, Reserved: o.Reserved}
			if unit.Currency != "" {
				one = v1alpha1.BudgetIdentity{Name: o.Identity, Cost: money(unit, o)}
			}
			s.Identities = append(s.Identities, one)
		}
	}
	if unit.Currency == "" {
		s.Spent, s.Reserved, s.Limit = busiest.Spent, busiest.Reserved, unit.Limit
	} else {
		s.Cost = money(unit, busiest)
	}
	s.Conditions = []metav1.Condition{exhausted(b, &s, unit, busiest)}
	b.Status = s
}

// money shows an account in a currency.
func money(unit budget.Charge, o spending.Balance) *v1alpha1.BudgetMoney {
	return &v1alpha1.BudgetMoney{Currency: unit.Currency, Spent: unit.Show(o.Spent), Reserved: unit.Show(o.Reserved), Limit: unit.Show(unit.Limit)}
}

// exhausted returns the condition. Nobody notes when a budget became exhausted, so its time is that of the window. What requests
// have reserved is not left for others, so a budget whose rest is reserved is exhausted until they end.
func exhausted(b *v1alpha1.Budget, s *v1alpha1.BudgetStatus, unit budget.Charge, o spending.Balance) metav1.Condition {
	left := unit.Limit - min(o.Spent, unit.Limit) // the sum with the reserved may be larger than any number
	left -= min(o.Reserved, left)
	c := metav1.Condition{
		Type: v1alpha1.ConditionExhausted, Status: metav1.ConditionFalse, Reason: v1alpha1.ReasonBudgetAvailable,
		ObservedGeneration: b.Generation, LastTransitionTime: *s.WindowStart,
		Message: fmt.Sprintf("%s of %s %s are left", unit.Show(left), unit.Show(unit.Limit), unit.Unit()),
	}
	if left > 0 {
		return c
	}
	c.Status, c.Reason = metav1.ConditionTrue, v1alpha1.ReasonBudgetExhausted
	c.Message = fmt.Sprintf("%s of %s %s are spent", unit.Show(o.Spent), unit.Show(unit.Limit), unit.Unit())
	if o.Spent < unit.Limit {
		c.Message += fmt.Sprintf(" and %s are reserved by requests that have not ended; what they do not use is free again at their end", unit.Show(o.Reserved))
	}
	c.Message += "; the budget begins again at " + s.RenewsAt.UTC().Format(time.RFC3339)
	return c
}
