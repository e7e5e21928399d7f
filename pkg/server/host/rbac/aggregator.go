// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package rbac

import (
	"context"
	"slices"
	"strings"
	"time"

	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/klog/v2"
	"k8s.io/utils/clock"
)

// retryAfter is how long Aggregator waits after a failed write.
const retryAfter = time.Second

// Aggregator writes the rules of ClusterRoles with an aggregationRule into
// their objects, for people to read. The authorizer does not wait for it.
type Aggregator struct {
	View *View
	// Update stores a copy of a ClusterRole with other rules.
	Update func(ctx context.Context, r *rbacv1.ClusterRole) error
	Clock  clock.Clock
}

// Run writes until the context ends.
func (a Aggregator) Run(ctx context.Context) {
	for ctx.Err() == nil {
		stale, changed := a.View.stale()
		var retry <-chan time.Time
		for _, r := range stale {
			if err := a.Update(ctx, r); err != nil && ctx.Err() == nil {
				klog.FromContext(ctx).V(2).Info("Could not write aggregated rules, will retry", "clusterRole", r.Name, "err", err)
				retry = a.Clock.After(retryAfter)
			}
		}
		select {
		case <-changed:
		case <-retry:
		case <-ctx.Done():
		}
	}
}

// stale returns copies of the ClusterRoles whose stored rules differ from what
// they grant, with the rules corrected, and a channel that is closed at the
// next change.
func (v *View) stale() ([]*rbacv1.ClusterRole, <-chan struct{}) {
	v.mu.RLock()
	defer v.mu.RUnlock()
	var out []*rbacv1.ClusterRole
	for _, obj := range v.objects {
		r, ok := obj.(*rbacv1.ClusterRole)
		if !ok || r.AggregationRule == nil || r.DeletionTimestamp != nil {
			continue
		}
		if rules := v.rules[types.NamespacedName{Name: r.Name}]; !equality.Semantic.DeepEqual(rules, r.Rules) {
			r = r.DeepCopy()
			r.Rules = slices.Clone(rules)
			out = append(out, r)
		}
	}
	slices.SortFunc(out, func(a, b *rbacv1.ClusterRole) int { return strings.Compare(a.Name, b.Name) })
	return out, v.changed
}
