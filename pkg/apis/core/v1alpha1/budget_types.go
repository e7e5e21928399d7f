// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// BudgetWindow is the period after which a budget begins again. Windows are aligned in UTC.
// +enum
// +k8s:enum
type BudgetWindow string

// Windows of budgets.
const (
	// BudgetHour begins at each full hour.
	BudgetHour BudgetWindow = "hour"
	// BudgetDay begins at midnight.
	BudgetDay BudgetWindow = "day"
	// BudgetWeek begins on Monday at midnight.
	BudgetWeek BudgetWindow = "week"
	// BudgetMonth begins at midnight of the first of a month.
	BudgetMonth BudgetWindow = "month"
)

// BudgetSubjectKind is what a BudgetSubject names.
// +enum
// +k8s:enum
type BudgetSubjectKind string

// Kinds of subjects.
const (
	// BudgetServiceAccount is a ServiceAccount of the budget's namespace.
	BudgetServiceAccount BudgetSubjectKind = "ServiceAccount"
	// BudgetUser is a user by the name that the API server knows it by.
	BudgetUser BudgetSubjectKind = "User"
	// BudgetGroup is a group of users, such as one that an OIDC token names.
	BudgetGroup BudgetSubjectKind = "Group"
)

// +genclient
// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object
// +k8s:supportsSubresource="/status"

// Budget limits what the model requests of a namespace use within a window of time: those of tasks, of chats and of
// clients of the vendors' APIs. What a request may use at most is reserved before it is sent, in every budget that
// selects it or in none, and what it used is settled after its end. A request that does not fit is refused with the
// reason BudgetExhausted. Of input that a request only names, the size is not known before its vendor has read it: 50,000
// tokens are reserved for an image by its address, 64,000 for searches of the web by the vendor, and 1,048,576, which no
// model's context exceeds, for documents and files by their address or id and for what other tools of the vendor read.
type Budget struct {
	metav1.TypeMeta `json:",inline"`
	// metadata is the standard object metadata.
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`
	// spec is the limit and the requests to which it applies.
	// +required
	Spec BudgetSpec `json:"spec"`
	// status is what is spent and reserved. It is computed whenever the budget is read, and not stored, so a watch does
	// not report its changes.
	// +optional
	Status BudgetStatus `json:"status,omitempty"`
}

// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object

// BudgetList is a list of budgets.
type BudgetList struct {
	metav1.TypeMeta `json:",inline"`
	// metadata is the standard list metadata.
	// +optional
	metav1.ListMeta `json:"metadata,omitempty"`
	// items are the budgets.
	Items []Budget `json:"items"`
}

// BudgetSpec is a limit and the requests to which it applies.
type BudgetSpec struct {
	// limit is what may be used within one window.
	// +required
	Limit BudgetLimit `json:"limit"`
	// window is the period after which the budget begins again: hour, day, week (from Monday) or month, aligned in UTC.
	// +required
	// +k8s:required
	Window BudgetWindow `json:"window"`
	// selector says which requests count. Empty selects all requests of the namespace.
	// +optional
	// +k8s:optional
	Selector *BudgetSelector `json:"selector,omitempty"`
	// perIdentity gives each user and ServiceAccount the whole limit for itself, including those that were never seen before.
	// It does not apply to those whom the selector.requesters of another budget of the namespace names as User or
	// ServiceAccount, so that it is the default for everybody else.
	// +optional
	// +k8s:optional
	PerIdentity bool `json:"perIdentity,omitempty"`
	// warnPercent are the parts of the limit, in percent, at which a warning is recorded, once for each window: 80 by
	// default.
	// +optional
	// +k8s:optional
	// +k8s:maxItems=10
	// +listType=set
	// +k8s:listType=set
	WarnPercent []int32 `json:"warnPercent,omitempty"`
}

// BudgetLimit is what may be used within one window: tokens or cost.
type BudgetLimit struct {
	// tokens is the number of tokens, input and output together. Input that a cache supplied or took counts as well.
	// +optional
	// +k8s:optional
	// +k8s:minimum=1
	Tokens *int64 `json:"tokens,omitempty"`
	// cost is the amount of money, by spec.prices of the Providers: the price that is in force when a request begins. A
	// request to a model without a price in this currency is refused with the reason BudgetUnpriced.
	// +optional
	// +k8s:optional
	Cost *BudgetCost `json:"cost,omitempty"`
}

// BudgetCost is an amount of money.
type BudgetCost struct {
	// amount is a decimal number above zero such as "250" or "12.50", with at most 9 digits before and 6 after the point.
	// +required
	// +k8s:required
	// +k8s:maxLength=16
	Amount string `json:"amount"`
	// currency is the ISO 4217 code of the currency, such as USD.
	// +required
	// +k8s:required
	// +k8s:maxLength=3
	Currency string `json:"currency"`
}

// BudgetMoney is what is spent and reserved of a limit of cost. The amounts are decimal numbers. Each request counts
// rounded up to a millionth.
type BudgetMoney struct {
	// currency is the code of the currency.
	Currency string `json:"currency"`
	// spent is what requests cost.
	Spent string `json:"spent"`
	// reserved is what requests that have not ended may still cost.
	Reserved string `json:"reserved"`
	// limit is what may be spent.
	Limit string `json:"limit"`
}

// BudgetSelector says which requests count. A request must match every field that is set.
type BudgetSelector struct {
	// taskLabels are labels that the task must have. A chat, and a request of the vendors' APIs, has no labels.
	// +optional
	// +k8s:optional
	// +k8s:maxProperties=16
	TaskLabels map[string]string `json:"taskLabels,omitempty"`
	// agents are the names of Agents of the namespace; any of them matches.
	// +optional
	// +k8s:optional
	// +k8s:maxItems=64
	// +listType=set
	// +k8s:listType=set
	Agents []string `json:"agents,omitempty"`
	// providers are the names of Providers of the namespace; any of them matches.
	// +optional
	// +k8s:optional
	// +k8s:maxItems=64
	// +listType=set
	// +k8s:listType=set
	Providers []string `json:"providers,omitempty"`
	// requesters are those for whom the requests are made: who created the task, or the root of its tree, or who calls a
	// chat or a vendor's API. Any of them matches.
	// +optional
	// +k8s:optional
	// +k8s:maxItems=64
	// +listType=atomic
	Requesters []BudgetSubject `json:"requesters,omitempty"`
}

// BudgetSubject is a user, a ServiceAccount or a group.
type BudgetSubject struct {
	// kind is ServiceAccount, User or Group.
	// +required
	// +k8s:required
	Kind BudgetSubjectKind `json:"kind"`
	// name is its name. A ServiceAccount is one of the budget's namespace; name one of another namespace as a User,
	// system:serviceaccount:NAMESPACE:NAME.
	// +required
	// +k8s:required
	// +k8s:maxLength=512
	Name string `json:"name"`
}

// BudgetStatus is what is spent and reserved in the current window.
type BudgetStatus struct {
	// spent is the number of tokens that were used. With perIdentity it is that of the identity that has used and
	// reserved most.
	// +optional
	Spent int64 `json:"spent,omitempty"`
	// reserved is the number of tokens that requests which have not ended may still use.
	// +optional
	Reserved int64 `json:"reserved,omitempty"`
	// limit is the number of tokens that may be used.
	// +optional
	Limit int64 `json:"limit,omitempty"`
	// cost has the figures in place of the three above if the limit is one of cost.
	// +optional
	// +k8s:optional
	Cost *BudgetMoney `json:"cost,omitempty"`
	// windowStart is when the current window began.
	// +optional
	// +k8s:optional
	WindowStart *metav1.Time `json:"windowStart,omitempty"`
	// renewsAt is when the next window begins.
	// +optional
	// +k8s:optional
	RenewsAt *metav1.Time `json:"renewsAt,omitempty"`
	// identities are, with perIdentity, those that have used or reserved most, at most 20, and their figures.
	// +optional
	// +k8s:optional
	// +listType=atomic
	Identities []BudgetIdentity `json:"identities,omitempty"`
	// conditions are the conditions of the budget: Exhausted is True if nothing is left, of the busiest identity with
	// perIdentity.
	// +optional
	// +k8s:optional
	// +listType=map
	// +listMapKey=type
	// +patchStrategy=merge
	// +patchMergeKey=type
	Conditions []metav1.Condition `json:"conditions,omitempty" patchStrategy:"merge" patchMergeKey:"type"`
}

// BudgetIdentity is what one identity has used of a budget with perIdentity.
type BudgetIdentity struct {
	// name is the user name.
	// +required
	Name string `json:"name"`
	// spent is the number of tokens that it used.
	// +optional
	Spent int64 `json:"spent,omitempty"`
	// reserved is the number of tokens that its requests which have not ended may still use.
	// +optional
	Reserved int64 `json:"reserved,omitempty"`
	// cost has the figures in place of these if the limit is one of cost.
	// +optional
	// +k8s:optional
	Cost *BudgetMoney `json:"cost,omitempty"`
}
