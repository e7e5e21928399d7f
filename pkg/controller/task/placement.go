// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package task

import (
	corev1 "k8s.io/api/core/v1"

	"github.com/platform-ai/platform/pkg/apis/core/v1alpha1"
)

// placement merges the Agent's placement with the task's: each field that the task sets
// replaces the Agent's as a whole, also maps and lists.
func placement(own *v1alpha1.TaskExecutionSpec, agent *v1alpha1.ExecutionPlacement) v1alpha1.ExecutionPlacement {
	var p v1alpha1.ExecutionPlacement
	if agent != nil {
		p = *agent
	}
	if own == nil {
		return p
	}
	if own.RuntimeClassName != nil {
		p.RuntimeClassName = own.RuntimeClassName
	}
	if own.NodeSelector != nil {
		p.NodeSelector = own.NodeSelector
	}
	if own.Tolerations != nil {
		p.Tolerations = own.Tolerations
	}
	if own.Affinity != nil {
		p.Affinity = own.Affinity
	}
	return p
}

// memoryLimit returns the memory limit of the task, or else of its Agent, in bytes; 0 if there is none.
func memoryLimit(t *v1alpha1.Task, res *resolved) int64 {
	for _, r := range []*corev1.ResourceRequirements{t.Spec.Resources, res.resources} {
		if r == nil {
			continue
		}
		if q, ok := r.Limits[corev1.ResourceMemory]; ok {
			return q.Value()
		}
	}
	return 0
}
