// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package task

import (
	"github.com/platform-ai/platform/pkg/apis/core/v1alpha1"
	"github.com/platform-ai/platform/pkg/server/registry/core/task/stored"
)

// agentTimeout is the timeout of a task of type agent that has none.
const agentTimeout v1alpha1.Duration = "30m"

// completeAgentTask sets what a new task of type agent leaves out: its timeout, and the branch that its changes are published
// to. The runs of a schedule are tasks of their own, each with its branch.
func completeAgentTask(t *v1alpha1.Task) {
	if t.Spec.Type != v1alpha1.TaskTypeAgent {
		return
	}
	if t.Spec.Timeout == nil {
		t.Spec.Timeout = new(agentTimeout)
	}
	if w := t.Spec.Workspace; w.Writes() && w.PushBranch == "" && t.Spec.Schedule == "" {
		w.PushBranch = stored.OwnBranch(t)
	}
}

// keepCompleted keeps what completeAgentTask has set in an update that leaves it out.
func keepCompleted(t, old *v1alpha1.Task) {
	if old.Spec.Type != v1alpha1.TaskTypeAgent {
		return
	}
	if t.Spec.Timeout == nil {
		t.Spec.Timeout = old.Spec.Timeout
	}
	if w, was := t.Spec.Workspace, old.Spec.Workspace; w != nil && was != nil && w.PushBranch == "" && was.PushBranch == stored.OwnBranch(old) {
		w.PushBranch = was.PushBranch
	}
}
