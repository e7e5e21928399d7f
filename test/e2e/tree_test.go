// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"fmt"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/platform-ai/platform/pkg/apis/core/v1alpha1"
)

// downScript: a task delegates to a lead, who starts a command that takes long. Nobody waits for what they delegated.
const downScript = `
models: [scripted-1]
turns:
- name: delegate
  match: {turn: 1, lastRole: user, contains: From the top}
  reply: {toolCalls: [{name: delegate_task, arguments: {agent: lead, prompt: Go on.}}]}
- name: start a command
  match: {turn: 1, lastRole: user, contains: Go on}
  reply: {toolCalls: [{name: create_container_task, arguments: {command: [sleep, "600"], image: "IMAGE"}}]}
- name: done
  match: {turn: 2, lastRole: tool}
  reply: {text: It is started.}
`

// TestDeletedTrees deletes roots with kubectl while their trees work. With either propagation the whole tree is gone when
// kubectl returns. With --cascade=orphan only the root is; the rest is cancelled and stays, until the next task is deleted.
func TestDeletedTrees(t *testing.T) {
	t.Parallel()
	everywhere(t, deletedTrees)
}

func deletedTrees(t *testing.T, p place) {
	delegates := v1alpha1.AgentSpec{Coordination: &v1alpha1.AgentCoordination{Enabled: true, AllowedAgents: []v1alpha1.NamespacedReference{{Name: v1alpha1.AnyAgent}}}}
	cast(t, p, strings.ReplaceAll(downScript, "IMAGE", p.Image()), []v1alpha1.Agent{
		{ObjectMeta: metav1.ObjectMeta{Name: "chief"}, Spec: delegates}, {ObjectMeta: metav1.ObjectMeta{Name: "lead"}, Spec: delegates},
	})
	roots := []string{"background", "foreground", "orphan"}
	for _, root := range roots {
		apply(t, p, map[string]any{
			"apiVersion": "core.platform.ai/v1alpha1", "kind": "Task", "metadata": map[string]any{"name": root},
			"spec": map[string]any{"type": "ai", "agentRef": map[string]any{"name": "chief"}, "prompt": "From the top, " + root + "."},
		})
	}
	kept := ""
	for _, root := range roots {
		p.MustShell(t, "kubectl wait --for=condition=WaitingForChildren --timeout=300s task/"+root)
		const names = " -o jsonpath='{.items[*].metadata.name}'"
		lead := strings.TrimSpace(p.MustShell(t, "kubectl get tasks -l platform.ai/parent-task="+root+names))
		p.MustShell(t, "kubectl wait --for=condition=WaitingForChildren --timeout=300s task/"+lead)
		command := strings.TrimSpace(p.MustShell(t, "kubectl get tasks -l platform.ai/parent-task="+lead+names))
		awaitEvent(t, p, command, v1alpha1.EventWorkerStarted)
		p.MustShell(t, fmt.Sprintf("kubectl delete task %s --cascade=%s --timeout=300s", root, root))
		left := p.MustShell(t, fmt.Sprintf("kubectl get tasks --ignore-not-found -o name %s %s %s", root, lead, command))
		want := ""
		if root == "orphan" {
			want = fmt.Sprintf("task.core.platform.ai/%s\ntask.core.platform.ai/%s\n", lead, command)
			kept = lead
		}
		if left != want {
			t.Errorf("--cascade=%s leaves\n%s, want\n%s", root, left, want)
		}
		if kept == "" {
			continue
		}
		for _, name := range []string{lead, command} {
			if task, _, _ := ended(t, p, name); task.Status.Phase != v1alpha1.TaskCancelled || name == lead && len(task.OwnerReferences) != 0 {
				t.Errorf("%s is %s, owned by %v", name, task.Status.Phase, task.OwnerReferences)
			}
		}
	}
	p.MustShell(t, "kubectl delete task "+kept+" --timeout=300s")
	if left := p.MustShell(t, "kubectl get tasks -o name"); left != "" {
		t.Errorf("there are %s", left)
	}
}
