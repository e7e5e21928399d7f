// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package task

import (
	"context"
	"fmt"

	"github.com/platform-ai/platform/pkg/apis/core/v1alpha1"
	"github.com/platform-ai/platform/pkg/plan"
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
		return 0, &refusal{reason: v1alpha1.ReasonParentEnded, message: fmt.Sprintf("the parent %q is gone", t.Status.Delegation.Parent), cancelled: true}
	case parent.Status.Phase.Terminal():
		return 0, &refusal{reason: v1alpha1.ReasonParentEnded, message: fmt.Sprintf("the parent %q is %s", parent.Name, parent.Status.Phase), cancelled: true}
	}
	agent, err := s.agentOf(ctx, t)
	if err != nil {
		return 0, fmt.Errorf("agent: %w", err)
	}
	if r := plan.CheckDelegation(parent, coordinator, t, agent, t.Status.Delegation.Depth); r != nil {
		return 0, &refusal{reason: r.Reason, message: r.Message}
	}
	return plan.MaxChildren(coordinator), nil
}
