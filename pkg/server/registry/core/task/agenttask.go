// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package task

import "github.com/platform-ai/platform/pkg/apis/core/v1alpha1"

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
	if w := t.Spec.Workspace; w != nil && w.PushBranch == "" && w.Intent == v1alpha1.WorkspaceWrite && t.Spec.Schedule == "" {
		w.PushBranch = ownBranch(t)
	}
}

// ownBranch returns the generated name of a task's publication branch. No other task has the same.
func ownBranch(t *v1alpha1.Task) string {
	return "platform/" + v1alpha1.ShortName(t.Name, "-"+string(t.UID[:min(8, len(t.UID))]), maxOwnBranch)
}

// maxOwnBranch leaves room for the prefix in the 255 bytes of spec.workspace.pushBranch.
const maxOwnBranch = 240

// keepCompleted keeps what completeAgentTask has set in an update that leaves it out.
func keepCompleted(t, old *v1alpha1.Task) {
	if old.Spec.Type != v1alpha1.TaskTypeAgent {
		return
	}
	if t.Spec.Timeout == nil {
		t.Spec.Timeout = old.Spec.Timeout
	}
	if w, was := t.Spec.Workspace, old.Spec.Workspace; w != nil && was != nil && w.PushBranch == "" && was.PushBranch == ownBranch(old) {
		w.PushBranch = was.PushBranch
	}
}

// withoutOwnBranch removes the generated branch of the source from the spec of its fork, which gets one of its own.
func withoutOwnBranch(spec *v1alpha1.TaskSpec, source *v1alpha1.Task) {
	if w := spec.Workspace; w != nil && w.PushBranch == ownBranch(source) {
		w.PushBranch = ""
	}
}
