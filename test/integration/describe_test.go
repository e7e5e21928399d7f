// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package integration

import (
	"os"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/platform-ai/platform/pkg/apis/core/v1alpha1"
	"github.com/platform-ai/platform/test/harness"
)

// TestDescribeShowsEvents: kubectl describe shows, in words, that a task failed and why, that it is tried again, and that a
// callback is refused.
func TestDescribeShowsEvents(t *testing.T) {
	t.Parallel()
	p := newPlatform(t, `case $PLATFORM_TASK_NAME in called) exit 0;; esac
echo '{"reason":"CommandFailed","message":"the command ended with exit code 3","exitCode":1}' > $PLATFORM_TERMINATION_LOG
exit 1`)
	p.run("fails", func(s *v1alpha1.TaskSpec) { s.RetryPolicy = &v1alpha1.RetryPolicy{MaxRetries: 1} })
	p.run("image", func(s *v1alpha1.TaskSpec) { s.Image = "example.com/program" })
	p.run("called", func(s *v1alpha1.TaskSpec) { s.WebhookURL = "http://169.254.169.254/hook" })
	p.awaitPhase("called", v1alpha1.TaskSucceeded)
	p.awaitPhase("image", v1alpha1.TaskFailed)
	p.awaitPhase("fails", v1alpha1.TaskFailed)
	home := t.TempDir()
	for name, want := range map[string][]string{
		"fails":  {"Warning  RetryScheduled", "Warning  CommandFailed", "exit code 3"},
		"image":  {"Warning  ImageNotUsed", "leave spec.image out"},
		"called": {"Warning  WebhookRefused", "it must be a public address"},
	} {
		var shown string
		p.poll("events of "+name+" in kubectl describe", func() bool { // they are written after the status
			r := harness.Run(t, append(os.Environ(), "HOME="+home, "KUBECONFIG="+p.Kubeconfig), harness.Bin(t, "kubectl"), "describe", "task", name)
			_, shown, _ = strings.Cut(r.Output, "\nEvents:")
			for _, w := range want {
				if !strings.Contains(shown, w) {
					return false
				}
			}
			return true
		})
		if strings.Contains(shown, "TaskCreated") {
			t.Errorf("%s: the events of the stream are shown as Events of the cluster: %s", name, shown)
		}
	}
}

// TestDescribeShowsApprovals: each approval that a task waits for is an Event of its own, and so is its decision.
func TestDescribeShowsApprovals(t *testing.T) {
	t.Parallel()
	p, _ := withModel(t, `
models: [scripted-1]
turns:
- match: {turn: 1}
  reply: {toolCalls: [{name: request_approval, arguments: {action: first, targetTool: deploy, targetArguments: {n: first}}}]}
- match: {turn: 2}
  reply: {toolCalls: [{name: request_approval, arguments: {action: second, targetTool: deploy, targetArguments: {n: second}}}]}
- match: {turn: 3}
  reply: {text: done}
`)
	must[*v1alpha1.Task](t)(p.tasks().Create(t.Context(), &v1alpha1.Task{ObjectMeta: metav1.ObjectMeta{Name: "asks"}, Spec: v1alpha1.TaskSpec{
		Type: v1alpha1.TaskTypeAI, Prompt: "ask", AI: &v1alpha1.TaskAI{ProviderRef: &v1alpha1.NamespacedReference{Name: "model"}, Tools: []string{"request_approval"}},
	}}, metav1.CreateOptions{}))
	for _, action := range []string{"first", "second"} {
		p.awaitTask("asks", func(t *v1alpha1.Task) bool {
			c := meta.FindStatusCondition(t.Status.Conditions, v1alpha1.ConditionWaitingForApproval)
			return c != nil && c.Status == metav1.ConditionTrue && strings.Contains(c.Message, action)
		})
		if out, errs, code := platformCommand(t.Context(), p.Kubeconfig, "task", "approve", "asks"); code != 0 {
			t.Fatalf("%s: %s%s", action, out, errs)
		}
	}
	p.awaitPhase("asks", v1alpha1.TaskSucceeded)
	p.poll("Events", func() bool { // they are written after the status
		got := map[string]bool{}
		for _, e := range must[*corev1.EventList](t)(p.Kubernetes(t).CoreV1().Events("default").List(t.Context(), metav1.ListOptions{FieldSelector: "involvedObject.name=asks"})).Items {
			for _, action := range []string{"first", "second"} {
				if strings.HasSuffix(e.Message, ": "+action) {
					got[e.Reason+" "+action] = true
				}
			}
		}
		return got["ApprovalRequested first"] && got["ApprovalRequested second"] && got["ApprovalDecided first"]
	})
}
