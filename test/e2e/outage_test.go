// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/platform-ai/platform/pkg/apis/core/v1alpha1"
)

// awayScript: an agent runs a program for 5 s and reports what it printed.
const awayScript = `
models: [scripted-1]
turns:
- name: work
  match: {lastRole: user, contains: Work}
  reply: {toolCalls: [{name: code_exec, arguments: {language: bash, code: 'sleep 5; echo agent worked'}}]}
- name: report
  match: {lastRole: tool, contains: exit_code}
  reply: {text: "It said: {{ .Results.code_exec.data.output }}"}
`

// TestServerIsAway: the API server of the cluster is away for a minute, and the work of a command and of an agent's program ends
// meanwhile. Their Pods keep what they have to deliver, so both tasks end as their work ended, in one attempt. The deadline of
// the command passes meanwhile, too, which is the end of its time for working and not for delivering.
func TestServerIsAway(t *testing.T) {
	p := newTeam(t)
	cast(t, p, awayScript, []v1alpha1.Agent{{ObjectMeta: metav1.ObjectMeta{Name: "coder"}, Spec: v1alpha1.AgentSpec{Tools: []v1alpha1.AgentTool{{Name: "code_exec"}}}}})
	command(t, p, "command", "sleep 5; echo command worked", map[string]any{"timeout": "20s"})
	apply(t, p, map[string]any{
		"apiVersion": "core.platform.ai/v1alpha1", "kind": "Task", "metadata": map[string]any{"name": "agent"},
		"spec": map[string]any{"type": "ai", "agentRef": map[string]any{"name": "coder"}, "prompt": "Work."},
	})
	awaitEvent(t, p, "agent", v1alpha1.EventToolCallStarted)
	awaitEvent(t, p, "command", v1alpha1.EventWorkerStarted)
	scale := "kubectl -n " + system + " scale statefulset platform-apiserver --replicas="
	p.MustShell(t, scale+"0")
	back := func() { p.MustShell(t, scale+"1"); p.awaitServer(t) }
	defer func() {
		if t.Failed() {
			back()
		}
	}()
	p.MustShell(t, "kubectl -n "+system+" wait --for=delete pod/platform-apiserver-0 --timeout=60s; sleep 60")
	back()
	for name, want := range map[string]string{"command": "command worked", "agent": "It said: agent worked"} {
		task, result, types := ended(t, p, name)
		if task.Status.Phase != v1alpha1.TaskSucceeded || task.Status.Attempts != 1 || !strings.Contains(result, want) {
			t.Errorf("%s: %s %q after %d attempts, result %s, events %v", name, task.Status.Phase, task.Status.Message, task.Status.Attempts, result, types)
		}
	}
}
