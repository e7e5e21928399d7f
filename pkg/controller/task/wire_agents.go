// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package task

import (
	"context"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/platform-ai/platform/pkg/apis/core/v1alpha1"
)

// agentAPI reads Agents and writes their status.
type agentAPI struct{ *wire }

// touchAgent notes when the task's Agent was last used.
func (w agentAPI) touchAgent(ctx context.Context, t *v1alpha1.Task, at metav1.Time) error {
	a, err := w.agentOf(ctx, t)
	if err != nil || a == nil || a.Status.LastUsed != nil && !a.Status.LastUsed.Before(&at) {
		return err
	}
	before := a.DeepCopy()
	a.Status.LastUsed = &at
	if err := w.Status().Patch(ctx, a, client.MergeFrom(before)); client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("agent: %w", err)
	}
	return nil
}

// agentOf reads the Agent of a task; nil if it has none, or it is gone.
func (w agentAPI) agentOf(ctx context.Context, t *v1alpha1.Task) (*v1alpha1.Agent, error) {
	if t.Spec.AgentRef == nil {
		return nil, nil //nolint:nilnil // no agent
	}
	var a v1alpha1.Agent
	err := w.Get(ctx, t.Spec.AgentRef.In(t.Namespace), &a)
	if apierrors.IsNotFound(err) {
		return nil, nil //nolint:nilnil // it is gone
	}
	if err != nil {
		return nil, err
	}
	return &a, nil
}
