// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"slices"
	"strings"

	"github.com/platform-ai/platform/pkg/apis/core/v1alpha1"
	"github.com/platform-ai/platform/pkg/worker/tool/builtin"
	"github.com/platform-ai/platform/pkg/worker/tool/coordination"
	"github.com/platform-ai/platform/pkg/worker/tool/memory"
	"github.com/platform-ai/platform/pkg/worker/tool/progress"
)

// automatic is a group of built-in tools that runs of type ai get without naming them.
type automatic struct {
	tools []string
	// when decides for a task and its agent, which is nil for a task without one.
	when func(t *v1alpha1.Task, a *v1alpha1.Agent) bool
	// kept is set if the annotation platform.ai/disable-coordination-tool-injection does not remove the group.
	kept bool
}

// automatics lists all groups. The tools are added in this order, after those that the agent and the task name. A name
// that is not built in is skipped.
func automatics() []automatic {
	return []automatic{
		{tools: []string{memory.RecallName, memory.RememberName, memory.ProposeName, memory.SearchName}, when: always, kept: true},
		{tools: []string{coordination.NameDelegate, coordination.NameWait, coordination.NameContainer, coordination.NameCancel}, when: coordinates},
		{tools: []string{coordination.NameSend, coordination.NameCheck}, when: hasFamily},
		{tools: []string{coordination.NameCreateAgent, coordination.NameDeleteAgent}, when: coordinates},
		{tools: []string{progress.Name}, when: coordinates},
		{tools: []string{ToolRequestApproval}, when: Autonomous},
	}
}

// always is for tools of every run.
func always(*v1alpha1.Task, *v1alpha1.Agent) bool { return true }

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

// automaticTools returns the names of the tools that the task gets without naming them.
func automaticTools(t *v1alpha1.Task, a *v1alpha1.Agent) []string {
	var names []string
	for _, group := range automatics() {
		if !group.kept && coordinationDisabled(t) || !group.when(t, a) {
			continue
		}
		names = append(names, group.tools...)
	}
	return slices.DeleteFunc(names, func(name string) bool { return !builtin.Has(name) })
}

// coordinationDisabled reports whether the task's annotation removes the automatic tools for coordination, approvals
// and messages. Tools that the task or its agent names stay.
func coordinationDisabled(t *v1alpha1.Task) bool {
	return strings.EqualFold(t.Annotations[v1alpha1.AnnotationDisableCoordination], "true")
}
