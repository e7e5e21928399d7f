// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"context"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/platform-ai/platform/pkg/apis/core/v1alpha1"
	"github.com/platform-ai/platform/pkg/support"
)

// delegates is the step that reports whether a coordinator may delegate to other Agents. One that an earlier version stored
// without allowedAgents could delegate to all of them then.
func delegates(_ context.Context, a *v1alpha1.Agent) error {
	if a.Spec.Coordination == nil || !a.Spec.Coordination.Enabled {
		meta.RemoveStatusCondition(&a.Status.Conditions, v1alpha1.ConditionCanDelegate)
		return nil
	}
	c := metav1.Condition{
		Type: v1alpha1.ConditionCanDelegate, Status: metav1.ConditionTrue, Reason: v1alpha1.ReasonAgentsAllowed, ObservedGeneration: a.Generation,
		Message: "spec.coordination.allowedAgents names agents",
	}
	if text := support.NoDelegates(&a.Spec); text != "" {
		c.Status, c.Reason, c.Message = metav1.ConditionFalse, v1alpha1.ReasonNoAgentAllowed, text
	}
	meta.SetStatusCondition(&a.Status.Conditions, c)
	return nil
}
