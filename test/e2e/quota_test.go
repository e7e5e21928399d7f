// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/api/meta"

	"github.com/platform-ai/platform/pkg/apis/core/v1alpha1"
)

// TestWaitingForAQuota: tasks for whose Pods a quota has no room wait, say so meanwhile, and succeed. That their timeout does not run
// while they wait is tested in test/aggregated.
func TestWaitingForAQuota(t *testing.T) {
	t.Parallel()
	p := newTeam(t)
	p.MustShell(t, "kubectl create quota one --hard=pods=1")
	p.MustShell(t, `kubectl wait quota/one --for=jsonpath='{.status.hard.pods}'=1 --timeout=300s`)
	command(t, p, "first", "sleep 600", nil)
	awaitEvent(t, p, "first", v1alpha1.EventWorkerStarted) // it has the only Pod
	names := []string{"b", "c"}
	for _, name := range names {
		command(t, p, name, "echo worked", nil)
	}
	p.MustShell(t, "kubectl wait --for=condition=WaitingToStart --timeout=300s task/b task/c")
	const reason = v1alpha1.ReasonQuotaExceeded
	if told := p.MustShell(t, "kubectl get events -o name --field-selector involvedObject.name=b,reason="+reason); told == "" {
		t.Error("no event says what b waits for")
	}
	cancelTask(t, p, "first")
	p.MustShell(t, "kubectl wait --for=condition=Succeeded --timeout=600s task/"+strings.Join(names, " task/"))
	for _, name := range names {
		task, result, _ := ended(t, p, name)
		if task.Status.Attempts != 1 || !strings.Contains(result, "worked") || meta.IsStatusConditionTrue(task.Status.Conditions, v1alpha1.ConditionWaitingToStart) {
			t.Errorf("%s: %+v, result %s", name, task.Status, result)
		}
	}
}
