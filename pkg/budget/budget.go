// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

// Package budget is the arithmetic of budgets: which budgets a model request counts towards, when their windows begin,
// and what reserving and settling do to an account. It has no clock and no store.
//
// A request reserves what it may use at most before it is sent, and is settled by what it used. A request counts in the
// window in which it ends: what is reserved when a window ends stays reserved in the next one. So what is spent and
// reserved together never exceeds the limit, unless the limit was lowered or a vendor reports more than was reserved.
package budget

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/platform-ai/platform/pkg/apis/core/v1alpha1"
	"github.com/platform-ai/platform/pkg/usage"
)

// Use is what budgets select a request by.
type Use struct {
	Namespace string
	// Agent and Provider are names, empty for none. An agent or provider of another namespace is NAMESPACE/NAME.
	Agent, Provider string
	// Labels are those of the task.
	Labels map[string]string
	// User is the name of the one for whom the request is made, and Groups are the user's groups.
	User   string
	Groups []string
}

// Charge is one account that a request counts towards.
type Charge struct {
	// Budget is the UID of the budget. Identity is the user whose account it is; empty if the budget has only one.
	Budget   types.UID
	Identity string
	// Name is the name of the budget.
	Name  string
	Limit int64
	// Currency is that of the limit, which is then in millionths; empty for a limit of tokens.
	Currency string `json:",omitempty"`
	Window   v1alpha1.BudgetWindow
	Warn     []int32
}

// Charges returns the accounts that a request counts towards, ordered by the names of their budgets. The budgets are all
// those of the request's namespace.
func Charges(budgets []v1alpha1.Budget, u Use) []Charge {
	var all []Charge
	for i := range budgets {
		b := &budgets[i]
		c, ok := ChargeOf(b)
		if b.Namespace != u.Namespace || !ok || !matches(b, u) || b.Spec.PerIdentity && namedElsewhere(budgets, i, u) {
			continue
		}
		if b.Spec.PerIdentity {
			c.Identity = u.User
		}
		all = append(all, c)
	}
	slices.SortFunc(all, func(a, b Charge) int { return strings.Compare(a.Name, b.Name) })
	return all
}

// ChargeOf returns the account of a budget without an identity. It reports false if the budget has no valid limit.
func ChargeOf(b *v1alpha1.Budget) (Charge, bool) {
	c := Charge{Budget: b.UID, Name: b.Name, Window: b.Spec.Window, Warn: b.Spec.WarnPercent}
	switch l := b.Spec.Limit; {
	case l.Tokens != nil:
		c.Limit = *l.Tokens
	case l.Cost != nil:
		n, err := usage.ParseMicros(l.Cost.Amount)
		if err != nil || n == 0 || l.Cost.Currency == "" {
			return c, false
		}
		c.Limit, c.Currency = n, l.Cost.Currency
	default:
		return c, false
	}
	return c, true
}

// namedElsewhere reports whether another budget than the i-th names the user.
func namedElsewhere(budgets []v1alpha1.Budget, i int, u Use) bool {
	for j := range budgets {
		b := &budgets[j]
		if j == i || b.Namespace != u.Namespace || b.Spec.Selector == nil {
			continue
		}
		for _, s := range b.Spec.Selector.Requesters {
			if s.Kind != v1alpha1.BudgetGroup && is(b.Namespace, s, u) {
				return true
			}
		}
	}
	return false
}

func matches(b *v1alpha1.Budget, u Use) bool {
	s := b.Spec.Selector
	if s == nil {
		return true
	}
	for k, v := range s.TaskLabels {
		if has, ok := u.Labels[k]; !ok || has != v {
			return false
		}
	}
	return (len(s.Agents) == 0 || slices.Contains(s.Agents, u.Agent)) &&
		(len(s.Providers) == 0 || slices.Contains(s.Providers, u.Provider)) &&
		(len(s.Requesters) == 0 || slices.ContainsFunc(s.Requesters, func(r v1alpha1.BudgetSubject) bool { return is(b.Namespace, r, u) }))
}

// is reports whether the user is the subject, or belongs to it.
func is(namespace string, s v1alpha1.BudgetSubject, u Use) bool {
	switch s.Kind {
	case v1alpha1.BudgetServiceAccount:
		return u.User == "system:serviceaccount:"+namespace+":"+s.Name
	case v1alpha1.BudgetUser:
		return u.User == s.Name
	case v1alpha1.BudgetGroup:
		return slices.Contains(u.Groups, s.Name)
	}
	return false
}

const (
	day      = 24 * time.Hour
	weekDays = 7
)

// Span returns when the window of a time begins and when it ends.
func Span(w v1alpha1.BudgetWindow, t time.Time) (start, end time.Time) {
	t = t.UTC()
	midnight := time.Date(t.Year(), t.Month(), t.Day(), 0, 0, 0, 0, time.UTC)
	switch w {
	case v1alpha1.BudgetHour:
		start = t.Truncate(time.Hour)
		return start, start.Add(time.Hour)
	case v1alpha1.BudgetWeek:
		start = midnight.AddDate(0, 0, -int((t.Weekday()+weekDays-time.Monday)%weekDays))
		return start, start.AddDate(0, 0, weekDays)
	case v1alpha1.BudgetMonth:
		start = midnight.AddDate(0, 0, 1-t.Day())
		return start, start.AddDate(0, 1, 0)
	case v1alpha1.BudgetDay:
	}
	return midnight, midnight.Add(day)
}

// Account is what is known of one account. The zero value is a new one.
type Account struct {
	// Start and End are the window to which Spent belongs.
	Start time.Time `json:"start"`
	End   time.Time `json:"end"`
	// Window is how long the window is. Accounts of earlier versions lack it.
	Window v1alpha1.BudgetWindow `json:"window,omitempty"`
	Spent  int64                 `json:"spent,omitempty"`
	// Currency is that of Spent and Reserved, which are then in millionths; empty for tokens.
	Currency string `json:"currency,omitempty"`
	// Reserved is what requests that have not ended may still use.
	Reserved int64 `json:"reserved,omitempty"`
	// Warned is the highest percentage that was warned of in this window.
	Warned int32 `json:"warned,omitempty"`
}

// At returns the account at a time: if a later window has begun, nothing is spent in it. A clock that goes back begins no
// window. If the window of the budget has changed, what was spent in the present one counts in the new one, too.
func (a Account) At(w v1alpha1.BudgetWindow, now time.Time) Account {
	start, end := Span(w, now)
	switch {
	case start.After(a.Start):
		return Account{Start: start, End: end, Window: w, Reserved: a.Reserved, Currency: a.Currency}
	case a.Window != w && !now.Before(a.Start):
		a.Window, a.End = w, end
	}
	return a
}

// In returns the account as one of a charge at a time. If the budget counted in another unit before, it begins anew.
func (a Account) In(c Charge, now time.Time) Account {
	if a.Currency != c.Currency {
		a = Account{Currency: c.Currency}
	}
	return a.At(c.Window, now)
}

// Of returns the account as In does, for the end of a request that began when the budget may have had another window.
func (a Account) Of(c Charge, now time.Time) Account {
	c.Window = cmp.Or(a.Window, c.Window)
	return a.In(c, now)
}

// ExhaustedError says that a budget has no room for a request.
type ExhaustedError struct {
	Charge

	Spent, Reserved, Asked int64
	// Renews is when the next window begins.
	Renews time.Time
}

// Error names the budget, what is left of it and when it begins again.
func (e *ExhaustedError) Error() string {
	of := ""
	if e.Identity != "" {
		of = " of " + e.Identity
	}
	text := fmt.Sprintf("%s: Budget %s%s: the request may need %s %s; of %s %s a %s %s are spent and %s are reserved", v1alpha1.ReasonBudgetExhausted,
		e.Name, of, e.Show(e.Asked), e.Unit(), e.Show(e.Limit), e.Unit(), e.Window, e.Show(e.Spent), e.Show(e.Reserved))
	if e.Asked > e.Limit {
		return text + "; the request alone exceeds the limit"
	}
	return text + "; the budget begins again at " + e.Renews.UTC().Format(time.RFC3339)
}

// Reserve returns the account with n more reserved; the error is an *ExhaustedError. The account must be that of
// the present window.
func (a Account) Reserve(c Charge, n int64) (Account, error) {
	if sum(sum(a.Spent, a.Reserved), n) > c.Limit {
		return a, &ExhaustedError{Charge: c, Spent: a.Spent, Reserved: a.Reserved, Asked: n, Renews: a.End}
	}
	a.Reserved = sum(a.Reserved, n)
	return a, nil
}

// Settle returns the account after a request for which n was reserved has used some of it, or more.
func (a Account) Settle(n, used int64) Account {
	a.Reserved = max(0, a.Reserved-n)
	a.Spent = sum(a.Spent, max(0, used))
	return a
}

// Return gives back some of what was spent at a time, if that is in the window of the account.
func (a Account) Return(n int64, at time.Time) Account {
	if !at.Before(a.Start) {
		a.Spent = max(0, a.Spent-max(0, n))
	}
	return a
}

// percent is the whole.
const percent = 100

// Warn returns the account with the highest percentage of c.Warn noted that is reached, and that percentage if it was
// not noted before in this window; otherwise 0. What is reserved does not count.
func (a Account) Warn(c Charge) (Account, int32) {
	var reached int32
	for _, p := range c.Warn {
		if p > reached && float64(a.Spent) >= float64(c.Limit)*float64(p)/percent {
			reached = p
		}
	}
	if reached <= a.Warned {
		return a, 0
	}
	a.Warned = reached
	return a, reached
}

// sum adds two numbers that are not negative; the largest number stands for all that are larger.
func sum(a, b int64) int64 {
	if b > math.MaxInt64-a {
		return math.MaxInt64
	}
	return a + b
}
