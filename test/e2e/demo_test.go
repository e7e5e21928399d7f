// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"strings"
	"testing"
)

// TestDemo applies the demo's own manifests, and checks the output of their tasks: a program that did not run leaves none,
// however the task ended.
func TestDemo(t *testing.T) {
	t.Parallel()
	everywhere(t, demo)
}

func demo(t *testing.T, p place) {
	applyTeam(t, p, startModel(t, p, scripts+"demo.yaml"))
	p.MustShell(t, "kubectl apply -f ../../artifacts/demo/task.yaml -f ../../artifacts/demo/approval.yaml -f ../../artifacts/demo/coordinator.yaml")
	for root, calls := range map[string]string{"rotate": "spec.taskName=rotate", "report": "spec.rootTask=report"} {
		id := awaitPending(t, p, calls+",status.state=pending")
		if root == "rotate" {
			p.MustShell(t, "kubectl wait --for=condition=WaitingForApproval --timeout=300s task/rotate")
		}
		p.MustShell(t, "kubectl create --raw "+native(p, "approvals/"+id+"/decision")+
			` -f - <<< '{"apiVersion":"core.platform.ai/v1alpha1","kind":"ApprovalDecision","spec":{"decision":"approve","reason":"go on"}}'`)
	}
	p.MustShell(t, "kubectl wait --for=condition=Succeeded --timeout=300s task/primes task/rotate task/report")
	const primes, files = `2\n3\n5\n7\n11\n13\n17\n19\n23\n29`, `service.log\nservice.log.1`
	for task, printed := range map[string][]string{"primes": {primes}, "rotate": {files}, "report": {"coder: ", primes, "operator: ", files}} {
		// The stand-in for a model can know what was printed only from the tool.
		got := p.MustShell(t, "kubectl get --raw "+native(p, "tasks/"+task+"/result"))
		for _, want := range printed {
			if !strings.Contains(got, want) {
				t.Errorf("result of %s lacks %s: %s", task, want, got)
			}
		}
	}
	delegated := strings.Fields(p.MustShell(t, "kubectl get tasks -l platform.ai/parent-task=report -o jsonpath='{.items[*].metadata.name}'"))
	if len(delegated) != 2 {
		t.Errorf("report delegated to %v", delegated)
	}
	for _, task := range append(delegated, "primes", "rotate") {
		calls := p.MustShell(t, "kubectl get executionevents --field-selector taskName="+task+",type=ToolCallCompleted -o jsonpath='{.items[*].toolName}'")
		if !strings.Contains(calls, "code_exec") {
			t.Errorf("%s ran no program, only %s", task, calls)
		}
	}
}
