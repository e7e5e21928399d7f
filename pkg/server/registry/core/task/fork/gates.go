// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package fork

import (
	"slices"
	"strings"

	"github.com/platform-ai/platform/pkg/apis/core/v1alpha1"
)

// gatesAbove returns the tools whose calls need an approval in a task because of tasks above it, or above the one that it was
// forked from. Those of its own agent come with the agent.
func gatesAbove(t *v1alpha1.Task) []string {
	gates := slices.Clone(t.Status.ApprovalRequiredTools)
	if d := t.Status.Delegation; d != nil {
		gates = append(gates, d.ApprovalRequiredTools...)
	}
	slices.Sort(gates)
	return slices.Compact(gates)
}

// SetGates records what a new fork takes over, so that later changes of its annotations do not matter.
func SetGates(t *v1alpha1.Task) {
	if gates := t.Annotations[v1alpha1.AnnotationForkGates]; gates != "" {
		t.Status.ApprovalRequiredTools = strings.Split(gates, ",")
	}
}
