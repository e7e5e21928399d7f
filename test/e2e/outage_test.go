// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/platform-ai/platform/pkg/apis/core/v1alpha1"
)

// whenTold waits until a file is made in the working folder.
const whenTold = "until [ -e told ]; do sleep 0.1; done; "

// awayScript: an agent runs a program and reports what it printed.
const awayScript = `
models: [scripted-1]
turns:
- name: work
  match: {lastRole: user, contains: Work}
  reply: {toolCalls: [{name: code_exec, arguments: {language: bash, code: '` + whenTold + `echo agent worked'}}]}
- name: report
  match: {lastRole: tool, contains: exit_code}
  reply: {text: "It said: {{ .Results.code_exec.data.output }}"}
`

// TestServerIsAway: the work of a command and of an agent's program ends while the API server of the cluster is away.
// Their Pods keep what they have to deliver, so both tasks end as their work ended, in one attempt. The deadline of
// the command passes meanwhile, too, which is the end of its time for working and not for delivering.
func TestServerIsAway(t *testing.T) {
	p := newTeam(t)
	cast(t, p, awayScript, []v1alpha1.Agent{{ObjectMeta: metav1.ObjectMeta{Name: "coder"}, Spec: v1alpha1.AgentSpec{Tools: []v1alpha1.AgentTool{{Name: "code_exec"}}}}})
	command(t, p, "command", whenTold+"echo command worked", map[string]any{"timeout": "1h"})
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
	p.MustShell(t, "kubectl -n "+system+" wait --for=delete pod/platform-apiserver-0 --timeout=300s")
	// An agent asks its model nothing more while the server is away.
	for task, ended := range map[string]string{"command": "[ -e /spool/end.json ]", "agent": "grep -q " + string(v1alpha1.EventToolCallCompleted) + " /spool/events"} {
		pod := p.MustShell(t, "kubectl get pods --selector platform.ai/task="+task+" -o jsonpath={.items[0].metadata.name}")
		p.MustShell(t, "kubectl exec "+pod+" -- sh -c 'touch /workspace/told; until "+ended+"; do sleep 0.1; done'")
	}
	job := p.MustShell(t, "kubectl get jobs --selector platform.ai/task=command -o name")
	p.MustShell(t, "kubectl patch "+strings.TrimSpace(job)+` --patch '{"spec":{"activeDeadlineSeconds":1}}'`)
	p.MustShell(t, "kubectl wait --for=condition=FailureTarget --timeout=300s "+job)
	back()
	for name, want := range map[string]string{"command": "command worked", "agent": "It said: agent worked"} {
		task, result, types := ended(t, p, name)
		if task.Status.Phase != v1alpha1.TaskSucceeded || task.Status.Attempts != 1 || !strings.Contains(result, want) {
			t.Errorf("%s: %s %q after %d attempts, result %s, events %v", name, task.Status.Phase, task.Status.Message, task.Status.Attempts, result, types)
		}
	}
}
