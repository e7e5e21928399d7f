// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

// Package budget serves budgets. Their status is computed from the accounts whenever a budget is read, and never stored.
// Administrators of a namespace write budgets, the other roles read them, and workers do not. How a budget limits requests is told by package storage/spending.
package budget

import (
	"context"
	"fmt"

	metainternalversion "k8s.io/apimachinery/pkg/apis/meta/internalversion"
	"k8s.io/klog/v2"
	"k8s.io/utils/clock"

	"github.com/platform-ai/platform/pkg/apis/core/v1alpha1"
	"github.com/platform-ai/platform/pkg/server/auth/external"
	"github.com/platform-ai/platform/pkg/server/registry/resource"
	"github.com/platform-ai/platform/pkg/storage/spending"
)

// Options are what budgets need besides the object store. All fields are required.
type Options struct {
	// Stored is what is stored of budgets.
	Stored *resource.Stored[*v1alpha1.Budget]
	// Accounts are what is spent and reserved.
	Accounts *spending.Store
	// Clock says which window is the present one.
	Clock clock.PassiveClock
}

// New makes the resource budgets.
func New(o Options) *resource.Definition[*v1alpha1.Budget] {
	status := accounts{o.Accounts, o.Clock}
	return &resource.Definition[*v1alpha1.Budget]{
		Resource:   v1alpha1.SchemeGroupVersion.WithResource("budgets"),
		Kind:       "Budget",
		Singular:   "budget",
		Roles:      resource.Roles{Readers: resource.Users(), Writers: []resource.Role{resource.Operator}},
		Scopes:     &external.Scopes{}, // what a namespace may use does not concern those who work for a task
		Categories: []string{"platform"},
		Columns:    columns(),
		Stored:     o.Stored,
		Shape: resource.Kept[*v1alpha1.Budget]{
			Default: setDefaults, Validate: validate, ValidateStatus: validateStatus, Show: status.show,
			AfterDelete: func(ctx context.Context, b *v1alpha1.Budget) {
				if err := o.Accounts.Forget(b.UID); err != nil {
					klog.FromContext(ctx).Error(err, "Cannot remove the accounts of a deleted budget; the first start after their window removes them", "budget", klog.KObj(b))
				}
			},
		},
	}
}

// Of returns what reads all budgets of a namespace, on behalf of the server itself. Its errors are API errors.
func Of(stored *resource.Stored[*v1alpha1.Budget]) func(ctx context.Context, namespace string) ([]v1alpha1.Budget, error) {
	return func(ctx context.Context, namespace string) ([]v1alpha1.Budget, error) {
		obj, err := stored.List(resource.AsServer(ctx, namespace), &metainternalversion.ListOptions{})
		if err != nil {
			return nil, err
		}
		list, ok := obj.(*v1alpha1.BudgetList)
		if !ok {
			return nil, fmt.Errorf("list of budgets: got %T", obj)
		}
		return list.Items, nil
	}
}
