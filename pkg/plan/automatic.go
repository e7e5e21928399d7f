// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"strings"

	"github.com/platform-ai/platform/pkg/apis/core/v1alpha1"
	"github.com/platform-ai/platform/pkg/plan/command"
	"github.com/platform-ai/platform/pkg/tool/builtin"
)

// coordinates reports whether the agent may delegate to others.
func coordinates(_ *v1alpha1.Task, a *v1alpha1.Agent) bool {
	return a != nil && a.Spec.Coordination != nil && a.Spec.Coordination.Enabled
}

// hasFamily reports whether there may be tasks that this one can write to: it was delegated, or it may delegate.
func hasFamily(t *v1alpha1.Task, a *v1alpha1.Agent) bool {
	return t.Status.Delegation != nil || coordinates(t, a)
}

// Autonomous reports whether the task works in iterations until its agent reports that the goal is complete. The agent
// is nil for a task without one.
func Autonomous(t *v1alpha1.Task, a *v1alpha1.Agent) bool {
	return t.Spec.Type == v1alpha1.TaskTypeAI && coordinates(t, a) && a.Spec.Coordination.Autonomous
}

// automaticTools returns the names of the tools that the task gets without naming them, after those that its agent and the task name. A
// task in a transaction, which a monitor would outlive, makes none.
func automaticTools(t *v1alpha1.Task, a *v1alpha1.Agent) []string {
	var names []string
	for _, b := range builtin.In(builtin.Runs) {
		if gets(b.Automatic, t, a) && (b != builtin.CreatePRMonitor || t.Spec.Transaction == nil) {
			names = append(names, b.Name)
		}
	}
	return names
}

// gets reports whether the task is one of those that get a tool automatically. Tools of every run, of reviewers and of conversations stay
// where the annotation platform.ai/disable-coordination-tool-injection removes the others.
func gets(of builtin.Automatic, t *v1alpha1.Task, a *v1alpha1.Agent) bool {
	switch of {
	case builtin.Reviewers:
		return command.Validation(t) != nil
	case builtin.Conversations:
		return t.Annotations[v1alpha1.AnnotationGatewayInterim] == "true"
	}
	if of != builtin.Every && coordinationDisabled(t) {
		return false
	}
	switch of {
	case builtin.Every:
		return true
	case builtin.Coordinators:
		return coordinates(t, a)
	case builtin.Families:
		return hasFamily(t, a)
	case builtin.Autonomous:
		return Autonomous(t, a)
	}
	return false
}

// coordinationDisabled reports whether the task's annotation removes the automatic tools for coordination, approvals
// and messages. Tools that the task or its agent names stay.
func coordinationDisabled(t *v1alpha1.Task) bool {
	return strings.EqualFold(t.Annotations[v1alpha1.AnnotationDisableCoordination], "true")
}
