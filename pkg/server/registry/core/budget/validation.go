// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package budget

import (
	"context"
	"strings"

	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/platform-ai/platform/pkg/apis/core/v1alpha1"
	"github.com/platform-ai/platform/pkg/usage"
)

// defaultWarn is the percentage that is warned of by default.
const defaultWarn = 80

// setDefaults treats an empty list as an absent one, because it is not stored.
func setDefaults(b *v1alpha1.Budget) {
	if len(b.Spec.WarnPercent) == 0 {
		b.Spec.WarnPercent = []int32{defaultWarn}
	}
}

const most = 100

func validate(_ context.Context, b *v1alpha1.Budget) field.ErrorList {
	var errs field.ErrorList
	path := field.NewPath("spec")
	errs = append(errs, checkLimit(b.Spec.Limit, path.Child("limit"))...)
	for i, p := range b.Spec.WarnPercent {
		if p < 1 || p > most {
			errs = append(errs, field.Invalid(path.Child("warnPercent").Index(i), p, "must be 1 to 100"))
		}
	}
	if b.Spec.Selector == nil {
		return errs
	}
	path = path.Child("selector", "requesters")
	for i, s := range b.Spec.Selector.Requesters {
		at := path.Index(i).Child("name")
		switch {
		case s.Kind == v1alpha1.BudgetGroup && strings.HasPrefix(s.Name, "system:"):
			errs = append(errs, field.Invalid(at, s.Name, "must be a group of the users' own; groups that begin with system: are not recorded with tasks"))
		case s.Name == "":
			errs = append(errs, field.Required(at, "names a "+string(s.Kind)))
		case s.Kind == v1alpha1.BudgetServiceAccount:
			for _, msg := range validation.IsDNS1123Subdomain(s.Name) {
				errs = append(errs, field.Invalid(at, s.Name, msg+"; name a ServiceAccount of another namespace as kind User, system:serviceaccount:NAMESPACE:NAME"))
			}
		}
	}
	return errs
}

// checkLimit requires one limit, of tokens or of cost.
func checkLimit(l v1alpha1.BudgetLimit, path *field.Path) field.ErrorList {
	switch {
	case l.Tokens == nil && l.Cost == nil:
		return field.ErrorList{field.Required(path, "must have either tokens or cost")}
	case l.Tokens != nil && l.Cost != nil:
		return field.ErrorList{field.Invalid(path, field.OmitValueType{}, "must have either tokens or cost, not both; a second budget may limit the other")}
	case l.Cost == nil || l.Cost.Amount == "" || l.Cost.Currency == "": // required fields are checked elsewhere
		return nil
	}
	var errs field.ErrorList
	path = path.Child("cost")
	if n, err := usage.ParseMicros(l.Cost.Amount); err != nil {
		errs = append(errs, field.Invalid(path.Child("amount"), l.Cost.Amount, err.Error()))
	} else if n == 0 {
		errs = append(errs, field.Invalid(path.Child("amount"), l.Cost.Amount, "must be greater than zero"))
	}
	if err := usage.CheckCurrency(l.Cost.Currency); err != nil {
		errs = append(errs, field.Invalid(path.Child("currency"), l.Cost.Currency, err.Error()))
	}
	return errs
}

// validateStatus refuses every change, because the status is not stored.
func validateStatus(_ context.Context, b, old *v1alpha1.Budget) field.ErrorList {
	if equality.Semantic.DeepEqual(b.Status, old.Status) {
		return nil
	}
	return field.ErrorList{field.Forbidden(field.NewPath("status"), "is computed by the server; to allow more, raise spec.limit")}
}
