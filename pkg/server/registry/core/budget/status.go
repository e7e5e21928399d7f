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
	if b.Spec.Limit.Tokens != nil {
		s.Limit = *b.Spec.Limit.Tokens
	}
	all := a.store.Balances(b.UID)[b.UID]
	for i := range all {
		all[i].Account = all[i].At(b.Spec.Window, now)
	}
	// An account of before perIdentity was changed counts no more.
	all = slices.DeleteFunc(all, func(o spending.Balance) bool { return (o.Identity != "") != b.Spec.PerIdentity })
	slices.SortFunc(all, func(x, y spending.Balance) int {
		return cmp.Or(cmp.Compare(y.Spent+y.Reserved, x.Spent+x.Reserved), cmp.Compare(x.Identity, y.Identity))
	})
	if len(all) > 0 {
		s.Spent, s.Reserved = all[0].Spent, all[0].Reserved
		if !all[0].Start.IsZero() { // it is later than that of a clock that went back, or of a window that was changed
			s.WindowStart.Time = all[0].Start
		}
	}
	if b.Spec.PerIdentity {
		for _, o := range all[:min(len(all), maxIdentities)] {
			s.Identities = append(s.Identities, v1alpha1.BudgetIdentity{Name: o.Identity, Spent: o.Spent, Reserved: o.Reserved})
		}
	}
	s.Conditions = []metav1.Condition{exhausted(b, &s)}
	b.Status = s
}

// exhausted returns the condition. Nobody notes when a budget became exhausted, so its time is that of the window.
func exhausted(b *v1alpha1.Budget, s *v1alpha1.BudgetStatus) metav1.Condition {
	c := metav1.Condition{
		Type: v1alpha1.ConditionExhausted, Status: metav1.ConditionFalse, Reason: v1alpha1.ReasonBudgetAvailable,
		ObservedGeneration: b.Generation, LastTransitionTime: *s.WindowStart,
		Message: fmt.Sprintf("%d of %d tokens are left", max(0, s.Limit-s.Spent-s.Reserved), s.Limit),
	}
	if s.Spent >= s.Limit {
		c.Status, c.Reason = metav1.ConditionTrue, v1alpha1.ReasonBudgetExhausted
		c.Message = fmt.Sprintf("%d of %d tokens are spent; the budget begins again at %s", s.Spent, s.Limit, s.RenewsAt.UTC().Format(time.RFC3339))
	}
	return c
}
