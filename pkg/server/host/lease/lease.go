// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

// Package lease serves coordination.k8s.io leases, which programs use to elect
// a leader and to show that they are alive.
package lease

import (
	"context"

	coordinationv1 "k8s.io/api/coordination/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/platform-ai/platform/pkg/server/registry/resource"
)

// Leases is the resource.
var Leases = &resource.Definition[*coordinationv1.Lease]{
	Unguarded: true,
	Resource:  coordinationv1.SchemeGroupVersion.WithResource("leases"),
	Kind:      "Lease", Singular: "lease",
	Columns: []resource.Column[*coordinationv1.Lease]{
		{Name: "Holder", Description: "Who holds the lease.", Value: holder},
	},
	Shape: resource.Kept[*coordinationv1.Lease]{Validate: validate},
}

func holder(l *coordinationv1.Lease) any {
	if l.Spec.HolderIdentity == nil {
		return ""
	}
	return *l.Spec.HolderIdentity
}

func validate(_ context.Context, l *coordinationv1.Lease) field.ErrorList {
	spec := field.NewPath("spec")
	var errs field.ErrorList
	if d := l.Spec.LeaseDurationSeconds; d != nil && *d <= 0 {
		errs = append(errs, field.Invalid(spec.Child("leaseDurationSeconds"), *d, "must be greater than 0"))
	}
	if n := l.Spec.LeaseTransitions; n != nil && *n < 0 {
		errs = append(errs, field.Invalid(spec.Child("leaseTransitions"), *n, "must be greater than or equal to 0"))
	}
	if l.Spec.PreferredHolder != nil && l.Spec.Strategy == nil {
		errs = append(errs, field.Forbidden(spec.Child("preferredHolder"), "may only be specified together with a strategy"))
	}
	return errs
}
