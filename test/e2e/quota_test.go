// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"slices"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"

	"github.com/platform-ai/platform/pkg/apis/core/v1alpha1"
)

// TestWaitingForAQuota: tasks for whose Pods a quota has no room wait, longer than their timeout if need be, say so meanwhile, and
// succeed. Waiting is not running.
func TestWaitingForAQuota(t *testing.T) {
	t.Parallel()
	p := newTeam(t)
	const timeout = 35 * time.Second
	p.MustShell(t, "kubectl create quota one --hard=pods=1")
	p.MustShell(t, `kubectl wait quota/one --for=jsonpath='{.status.hard.pods}'=1 --timeout=300s`)
	names := []string{"a", "b", "c"}
	for i, name := range names {
		command(t, p, name, "sleep 15; echo worked", map[string]any{"timeout": timeout.String()})
		if i == 0 {
			awaitEvent(t, p, name, v1alpha1.EventWorkerStarted) // it has the only Pod
		}
	}
	p.MustShell(t, "kubectl wait --for=condition=WaitingToStart --timeout=300s task/b task/c")
	const reason = v1alpha1.ReasonQuotaExceeded
	if told := p.MustShell(t, "kubectl get events -o name --field-selector involvedObject.name=b,reason="+reason); told == "" {
		t.Error("no event says what b waits for")
	}
	p.MustShell(t, "kubectl wait --for=condition=Succeeded --timeout=600s task/"+strings.Join(names, " task/"))
	var took []time.Duration
	for _, name := range names {
		task, result, _ := ended(t, p, name)
		if task.Status.Attempts != 1 || !strings.Contains(result, "worked") || meta.IsStatusConditionTrue(task.Status.Conditions, v1alpha1.ConditionWaitingToStart) {
			t.Errorf("%s: %+v, result %s", name, task.Status, result)
		}
		took = append(took, task.Status.CompletionTime.Sub(task.CreationTimestamp.Time))
	}
	if slices.Max(took) <= timeout {
		t.Errorf("no task waited longer than its timeout: %v", took)
	}
}
