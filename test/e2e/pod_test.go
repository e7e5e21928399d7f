// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/api/meta"

	"github.com/platform-ai/platform/pkg/apis/core/v1alpha1"
)

// reasonOf is the reason in a task's terminal event.
func reasonOf(t *testing.T, p place, task string) string {
	t.Helper()
	var events v1alpha1.ExecutionEventList
	getJSON(t, p, "executionevents --field-selector taskName="+task+",type="+string(v1alpha1.EventTaskFailed), &events)
	if len(events.Items) != 1 || events.Items[0].Content == nil {
		t.Fatalf("terminal events of %s: %+v", task, events.Items)
	}
	var content struct{ Reason string }
	if err := json.Unmarshal(events.Items[0].Content.Raw, &content); err != nil {
		t.Fatal(err)
	}
	return content.Reason
}

// failedBecause checks that a task failed with a reason, and that the reason is the same wherever it is reported.
func failedBecause(t *testing.T, p place, name, message string, reasons ...string) {
	t.Helper()
	task, _, types := ended(t, p, name)
	c := meta.FindStatusCondition(task.Status.Conditions, v1alpha1.ConditionComplete)
	if task.Status.Phase != v1alpha1.TaskFailed || c == nil || c.Reason != v1alpha1.ReasonTaskFailed || c.Message != task.Status.Message || !strings.Contains(c.Message, message) {
		t.Errorf("%s: phase %s, message %q, condition %+v", name, task.Status.Phase, task.Status.Message, c)
	}
	if got := terminalEvents(types); !slices.Equal(got, []v1alpha1.EventType{v1alpha1.EventTaskFailed}) {
		t.Errorf("%s: the stream ends with %v", name, got)
	}
	if got := reasonOf(t, p, name); !slices.Contains(reasons, got) {
		t.Errorf("%s: reason %s, want one of %v", name, got, reasons)
	}
}

// TestPodsFail: what ends a pod in a cluster ends its task, with the correct phase and reason. Pods that do not start are in
// test/kubernetes.
func TestPodsFail(t *testing.T) {
	p := newTeam(t)
	command(t, p, "hungry", "echo begun; tail /dev/zero", map[string]any{"resources": map[string]any{"limits": map[string]any{"memory": "96Mi"}}})
	command(t, p, "evicted", "echo begun; sleep 600", nil)
	awaitEvent(t, p, "evicted", v1alpha1.EventWorkerStarted)
	pod := p.MustShell(t, "kubectl get pods --selector platform.ai/task=evicted -o jsonpath={.items[0].metadata.name}")
	p.MustShell(t, "kubectl create --raw /api/v1/namespaces/"+p.namespace+"/pods/"+pod+`/eviction -f - <<< '{"apiVersion":"policy/v1","kind":"Eviction","metadata":{"name":"`+pod+`"}}'`)
	failedBecause(t, p, "hungry", "memory", "OOMKilled")
	failedBecause(t, p, "evicted", "", "Evicted")
	if got := p.MustShell(t, "kubectl get --raw "+native(p, "tasks/hungry/log")); !strings.Contains(got, "begun") {
		t.Errorf("log: %s", got)
	}
	// What a task made is deleted with it: the garbage collector follows owners through the aggregated API.
	p.MustShell(t, "kubectl delete task hungry --timeout=300s")
	p.MustShell(t, "kubectl wait --for=delete job --selector platform.ai/task=hungry --timeout=300s")
}

// TestNodeDies: a node dies with everything on it, and comes back. The task that
// ran there ends in the correct phase, a new one runs, and nothing is lost.
func TestNodeDies(t *testing.T) {
	p := newTeam(t)
	command(t, p, "before", "echo kept", nil)
	ended(t, p, "before")
	command(t, p, "hit", "echo begun; sleep 600", nil)
	awaitEvent(t, p, "hit", v1alpha1.EventWorkerStarted)
	p.cluster.StopNode(t)
	p.MustShell(t, "kubectl wait --for=condition=Ready=Unknown --timeout=300s nodes --all")
	p.MustShell(t, "kubectl get namespaces") // the rest of the cluster keeps working
	p.cluster.StartNode(t)
	p.awaitServer(t)
	p.MustShell(t, "kubectl -n "+system+" rollout status --timeout=300s deployment/platform-controller")
	failedBecause(t, p, "hit", "", "NodeLost", "Evicted", "WorkerLost")
	if got := p.MustShell(t, "kubectl get --raw "+native(p, "tasks/before/result")); !strings.Contains(got, "kept") {
		t.Errorf("result: %s", got)
	}
	command(t, p, "after", "echo again", nil)
	if task, _, _ := ended(t, p, "after"); task.Status.Phase != v1alpha1.TaskSucceeded {
		t.Errorf("after: %s %q", task.Status.Phase, task.Status.Message)
	}
}
