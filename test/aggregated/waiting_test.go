// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package aggregated

import (
	"path/filepath"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/platform-ai/platform/test/kit"
	"github.com/platform-ai/platform/test/kit/host"
)

// A run whose Pod has no room in the quota, or on a node, reports that, and neither
// its timeout nor its start timeout runs before the Pod is placed. If it never
// begins, the reason of its end says so. The controller has the rights of the manifests.
func TestWaitingIsNotRunning(t *testing.T) {
	s := Start(t)
	s.namespace("waiting")
	s.c.Kubectl(t, "apply", "-f", filepath.Join("..", "..", "manifests", "base", "controller-rbac.yaml"))
	config := host.Kubeconfig(t, s.account(system, "platform-controller"), "")
	control := func(startTimeout string) *kit.Process {
		return kit.Start(t, nil, kit.Bin(t, "platform-controller"), "--kubeconfig", config, "--leader-elect=false", "--health-probe-bind-address=",
			"--worker-image=test.example/worker:1", "--start-timeout="+startTimeout, "--watch-namespace=waiting")
	}
	patient := control("1h")
	s.apply(`{apiVersion: v1, kind: ResourceQuota, metadata: {name: runs, namespace: waiting}, spec: {hard: {limits.memory: 512Mi}}}`)
	s.await(quotas, "waiting", "runs", func(u *unstructured.Unstructured) bool {
		_, looked, _ := unstructured.NestedString(u.Object, "status", "hard", "limits.memory")
		return looked
	})
	s.apply(`{apiVersion: core.platform.ai/v1alpha1, kind: Task, metadata: {name: big, namespace: waiting}, spec: {type: container, image: a/b, command: ["true"], timeout: 1s}}`)
	waits := func(reason, message string) {
		t.Helper()
		s.await(tasks, "waiting", "big", func(u *unstructured.Unstructured) bool {
			status, _, _ := unstructured.NestedMap(u.Object, "status")
			text, _ := status["message"].(string)
			if status["phase"] == "Failed" {
				t.Fatalf("it failed: %s", text)
			}
			return status["phase"] == "Running" && condition(u, "WaitingToStart") == "True" && strings.Contains(text, message)
		})
		if limit := s.c.Kubectl(t, "-n", "waiting", "get", "jobs", "-o", "jsonpath={.items[*].spec.activeDeadlineSeconds}"); limit != "" {
			t.Errorf("the timeout runs while the task waits: %s s", limit)
		}
		events := s.c.Kubectl(t, "-n", "waiting", "get", "events", "--field-selector", "involvedObject.kind=Task,reason="+reason, "-o", "name")
		if strings.Count(events, "event/") != 1 {
			t.Errorf("events of %s: %q", reason, events)
		}
	}
	waits("QuotaExceeded", "the quota of the namespace leaves no room: exceeded quota: runs, requested: limits.memory=1Gi")
	if table := s.c.Kubectl(t, "-n", "waiting", "get", "tasks", "big"); !strings.Contains(table, " QuotaExceeded ") {
		t.Errorf("table:\n%s", table)
	}
	s.c.Kubectl(t, "-n", "waiting", "delete", "resourcequota", "runs")
	waits("Unschedulable", "no node takes the pod: no nodes available")
	if err := patient.Stop(); err != nil {
		t.Errorf("the controller ended with %v", err)
	}
	control("1s")
	s.await(tasks, "waiting", "big", func(u *unstructured.Unstructured) bool {
		phase, _, _ := unstructured.NestedString(u.Object, "status", "phase")
		message, _, _ := unstructured.NestedString(u.Object, "status", "message")
		if phase == "Failed" && !strings.HasPrefix(message, "never began: no node takes the pod: ") {
			t.Errorf("message %q", message)
		}
		return phase == "Failed"
	})
}
