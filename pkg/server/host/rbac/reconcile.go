// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package rbac

import (
	"context"
	"fmt"

	"golang.org/x/sync/errgroup"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/component-helpers/auth/rbac/reconciliation"

	"github.com/platform-ai/platform/pkg/server/registry/resource"
)

// writers is the maximum number of concurrent writes of Reconcile; concurrent writes share fsyncs.
const writers = 16

// Client reads and writes objects of one kind as an administrator.
type Client[T any] struct {
	Get    func(ctx context.Context, name string) (T, error)
	Create func(ctx context.Context, obj T) (T, error)
	Update func(ctx context.Context, obj T) (T, error)
	Delete func(ctx context.Context, name string) error
}

// Reconcile creates the default ClusterRoles for the served resources and the default ClusterRoleBindings, and adds
// to existing ones what is missing. What users added is kept. Objects with the annotation
// rbac.authorization.kubernetes.io/autoupdate=false are not changed.
func Reconcile(ctx context.Context, resources []resource.Resource, roles Client[*rbacv1.ClusterRole], bindings Client[*rbacv1.ClusterRoleBinding]) error {
	g, ctx := errgroup.WithContext(ctx)
	g.SetLimit(writers)
	for _, r := range defaultClusterRoles(resources) {
		g.Go(func() error {
			o := reconciliation.ReconcileRoleOptions{
				Role: reconciliation.ClusterRoleRuleOwner{ClusterRole: r}, Client: roleClient{ctx, roles}, Confirm: true,
			}
			return again("ClusterRole "+r.Name, func() error { _, err := o.Run(); return err })
		})
	}
	for _, b := range defaultClusterRoleBindings() {
		g.Go(func() error {
			o := reconciliation.ReconcileRoleBindingOptions{
				RoleBinding: reconciliation.ClusterRoleBindingAdapter{ClusterRoleBinding: b}, Client: bindingClient{ctx, bindings}, Confirm: true,
			}
			return again("ClusterRoleBinding "+b.Name, func() error { _, err := o.Run(); return err })
		})
	}
	return g.Wait()
}

// again retries f until no other writer interferes.
func again(what string, f func() error) error {
	for {
		switch err := f(); {
		case apierrors.IsConflict(err):
		case err != nil:
			return fmt.Errorf("default %s: %w", what, err)
		default:
			return nil
		}
	}
}

// roleClient and bindingClient implement the interface that the reconciliation requires, whose methods have no
// context.
type roleClient struct {
	ctx context.Context //nolint:containedctx // see above
	c   Client[*rbacv1.ClusterRole]
}

func (r roleClient) Get(_, name string) (reconciliation.RuleOwner, error) {
	return owner(r.c.Get(r.ctx, name))
}

func (r roleClient) Create(o reconciliation.RuleOwner) (reconciliation.RuleOwner, error) {
	return owner(r.c.Create(r.ctx, o.(reconciliation.ClusterRoleRuleOwner).ClusterRole))
}

func (r roleClient) Update(o reconciliation.RuleOwner) (reconciliation.RuleOwner, error) {
	return owner(r.c.Update(r.ctx, o.(reconciliation.ClusterRoleRuleOwner).ClusterRole))
}

func owner(r *rbacv1.ClusterRole, err error) (reconciliation.RuleOwner, error) {
	if err != nil {
		return nil, err
	}
	return reconciliation.ClusterRoleRuleOwner{ClusterRole: r}, nil
}

type bindingClient struct {
	ctx context.Context //nolint:containedctx // see roleClient
	c   Client[*rbacv1.ClusterRoleBinding]
}

func (b bindingClient) Get(_, name string) (reconciliation.RoleBinding, error) {
	return adapter(b.c.Get(b.ctx, name))
}

func (b bindingClient) Delete(_, name string, _ types.UID) error { return b.c.Delete(b.ctx, name) }

func (b bindingClient) Create(o reconciliation.RoleBinding) (reconciliation.RoleBinding, error) {
	return adapter(b.c.Create(b.ctx, o.(reconciliation.ClusterRoleBindingAdapter).ClusterRoleBinding))
}

func (b bindingClient) Update(o reconciliation.RoleBinding) (reconciliation.RoleBinding, error) {
	return adapter(b.c.Update(b.ctx, o.(reconciliation.ClusterRoleBindingAdapter).ClusterRoleBinding))
}

func adapter(r *rbacv1.ClusterRoleBinding, err error) (reconciliation.RoleBinding, error) {
	if err != nil {
		return nil, err
	}
	return reconciliation.ClusterRoleBindingAdapter{ClusterRoleBinding: r}, nil
}
