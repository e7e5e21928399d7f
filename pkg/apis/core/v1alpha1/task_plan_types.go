// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object

// TaskPlan is the plan that a task's agent keeps while it works: how far it is, and what it wants to do next. A create
// on tasks/plan replaces it; a get returns the newest one until the task ends. Every version is an event of type
// PlanUpdated.
type TaskPlan struct {
	metav1.TypeMeta `json:",inline"`
	// metadata holds the name and the namespace of the task in an answer. In a create it is not used.
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`
	// summary says in a few words how far the work is.
	// +optional
	Summary string `json:"summary,omitempty"`
	// planDocument is the plan itself, in Markdown.
	// +required
	PlanDocument string `json:"planDocument"`
	// progressPct is how much of the work is done, in percent. It is absent if the agent did not say.
	// +optional
	// +k8s:optional
	// +k8s:minimum=0
	// +k8s:maximum=100
	ProgressPct *int32 `json:"progressPct,omitempty"`
	// goalComplete is set when nothing is left to do. An autonomous task then ends after the current iteration.
	// +optional
	GoalComplete bool `json:"goalComplete,omitempty"`
	// iteration is the iteration of the task in which the plan was written, from 0. The server sets it.
	// +optional
	Iteration int32 `json:"iteration,omitempty"`
	// createdAt is when the first plan of the task was stored. The server sets it.
	// +optional
	CreatedAt *metav1.MicroTime `json:"createdAt,omitempty"`
	// updatedAt is when this plan was stored. The server sets it.
	// +optional
	UpdatedAt *metav1.MicroTime `json:"updatedAt,omitempty"`
}
