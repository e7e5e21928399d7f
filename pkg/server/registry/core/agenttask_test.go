// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package core_test

import (
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/runtime"

	"github.com/platform-ai/platform/pkg/apis/core/v1alpha1"
)

// TestAgentTasksAreCompleted: a task of type agent gets a timeout and, if it writes, a branch to publish to, which no other
// task has. Both stay when an update leaves them out.
func TestAgentTasksAreCompleted(t *testing.T) {
	s := start(t)
	const write = `workspace: {gitRepo: "https://h/r", intent: write`
	long := strings.Repeat("x", 240)
	for name, tc := range map[string]struct{ spec, branch, timeout string }{
		"writes":    {`{type: agent, agentRef: {name: x}, prompt: p, ` + write + `}}`, "platform/writes-", "30m"},
		long:        {`{type: agent, agentRef: {name: x}, prompt: p, ` + write + `}}`, "platform/" + long[:200], "30m"},
		"has-both":  {`{type: agent, agentRef: {name: x}, prompt: p, timeout: 5m, ` + write + `, pushBranch: mine}}`, "mine", "5m"},
		"reads":     {`{type: agent, agentRef: {name: x}, prompt: p, workspace: {gitRepo: "https://h/r"}}`, "", "30m"},
		"scheduled": {`{type: agent, agentRef: {name: x}, prompt: p, schedule: "@daily", ` + write + `}}`, "", "30m"},
		"plain-ai":  {`{type: ai, prompt: p}`, "", ""},
		"container": {`{type: container, command: [x]}`, "", ""},
	} {
		made := s.mustTask(name, tc.spec)
		check := func(when string, got *v1alpha1.TaskSpec) {
			branch, timeout := "", ""
			if got.Workspace != nil {
				branch = got.Workspace.PushBranch
			}
			if got.Timeout != nil {
				timeout = string(*got.Timeout)
			}
			if timeout != tc.timeout || !strings.HasPrefix(branch, tc.branch) || tc.branch == "" && branch != "" || len(branch) > 255 {
				t.Errorf("%.10s, %s: timeout %q and branch %q, want %q and %q", name, when, timeout, branch, tc.timeout, tc.branch)
			}
		}
		check("created", &made.Spec)
		if _, err := s.Update(s.User(), "tasks", name, func(o runtime.Object) {
			task := o.(*v1alpha1.Task)
			task.Labels = map[string]string{"a": "b"}
			if task.Spec.Workspace != nil && tc.branch != "mine" {
				task.Spec.Workspace.PushBranch = ""
			}
			if tc.timeout == "30m" {
				task.Spec.Timeout = nil
			}
		}); err != nil {
			t.Errorf("%.10s: %v", name, err)
		}
		check("updated", &s.Task(name).Spec)
	}
	first := s.Task("writes").Spec.Workspace.PushBranch
	s.Remove("tasks", "writes")
	if again := s.mustTask("writes", `{type: agent, agentRef: {name: x}, prompt: p, `+write+`}}`).Spec.Workspace.PushBranch; again == first {
		t.Errorf("a task that has the name of an earlier one has its branch, %s", again)
	}
}
