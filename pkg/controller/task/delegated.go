// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package task

import (
	"context"
	"fmt"

	"github.com/platform-ai/platform/pkg/apis/core/v1alpha1"
	"github.com/platform-ai/platform/pkg/plan"
	"github.com/platform-ai/platform/pkg/plan/refusal"
)

// delegated applies the rules of delegation to a child that is about to start: they may have changed since it was
// created. It returns how many siblings may run at once.
type delegated struct {
	parent  func(context.Context, *v1alpha1.Task) (*v1alpha1.Task, *v1alpha1.Agent, error)
	agentOf func(context.Context, *v1alpha1.Task) (*v1alpha1.Agent, error)
}

func (s delegated) check(ctx context.Context, t *v1alpha1.Task) (siblings int, err error) {
	parent, coordinator, err := s.parent(ctx, t)
	if err != nil {
		return 0, err
	}
	switch {
	case parent == nil:
		return 0, refusal.Cancelled(v1alpha1.ReasonParentEnded, "the parent %q is gone", t.Status.Delegation.Parent)
	case parent.Status.Phase.Terminal():
		return 0, refusal.Cancelled(v1alpha1.ReasonParentEnded, "the parent %q is %s", parent.Name, parent.Status.Phase)
	}
	agent, err := s.agentOf(ctx, t)
	if err != nil {
		return 0, fmt.Errorf("agent: %w", err)
	}
	if r := plan.CheckDelegation(parent, coordinator, t, agent, t.Status.Delegation.Depth); r != nil {
		return 0, r
	}
	return plan.MaxChildren(coordinator), nil
}
