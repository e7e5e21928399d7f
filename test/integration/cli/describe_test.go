// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/platform-ai/platform/pkg/apis/core/v1alpha1"
	"github.com/platform-ai/platform/test/kit"
	"github.com/platform-ai/platform/test/kit/standalone"
)

// TestDescribeShowsEvents: kubectl describe shows, in words, that a task failed and why, that it is tried again, and that a
// callback is refused.
func TestDescribeShowsEvents(t *testing.T) {
	t.Parallel()
	p := standalone.NewPlatform(t, `case $PLATFORM_TASK_NAME in called) exit 0;; esac
echo '{"reason":"CommandFailed","message":"the command ended with exit code 3","exitCode":1}' > $PLATFORM_TERMINATION_LOG
exit 1`)
	p.Run("fails", func(s *v1alpha1.TaskSpec) {
		s.RetryPolicy = &v1alpha1.RetryPolicy{MaxRetries: 1, InitialDelay: v1alpha1.DurationOf(time.Millisecond)}
	})
	p.Run("image", func(s *v1alpha1.TaskSpec) { s.Image = "example.com/program" })
	p.Run("called", func(s *v1alpha1.TaskSpec) { s.WebhookURL = "http://169.254.169.254/hook" })
	p.AwaitPhase("called", v1alpha1.TaskSucceeded)
	p.AwaitPhase("image", v1alpha1.TaskFailed)
	p.AwaitPhase("fails", v1alpha1.TaskFailed)
	home := t.TempDir()
	for name, want := range map[string][]string{
		"fails":  {"Warning  RetryScheduled", "Warning  CommandFailed", "exit code 3"},
		"image":  {"Warning  ImageNotUsed", "leave spec.image out"},
		"called": {"Warning  WebhookRefused", "it must be a public address"},
	} {
		var shown string
		kit.Await(t, "events of "+name+" in kubectl describe", func() bool { // they are written after the status
			r := kit.Run(t, append(os.Environ(), "HOME="+home, "KUBECONFIG="+p.Kubeconfig), kit.Bin(t, "kubectl"), "describe", "task", name)
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
	p, _ := standalone.WithModel(t, `
models: [scripted-1]
turns:
- match: {turn: 1}
  reply: {toolCalls: [{name: code_exec, arguments: {language: bash, code: echo first}}]}
- match: {turn: 2}
  reply: {toolCalls: [{name: code_exec, arguments: {language: bash, code: echo second}}]}
- match: {turn: 3}
  reply: {text: done}
`)
	kit.Must[*v1alpha1.Agent](t)(p.API().Agents("default").Create(t.Context(), &v1alpha1.Agent{ObjectMeta: metav1.ObjectMeta{Name: "careful"}, Spec: v1alpha1.AgentSpec{
		ProviderRef: &v1alpha1.NamespacedReference{Name: "model"}, Tools: []v1alpha1.AgentTool{{Name: "code_exec"}},
		Coordination: &v1alpha1.AgentCoordination{Enabled: true, ApprovalRequiredTools: []string{"code_exec"}},
	}}, metav1.CreateOptions{}))
	kit.Must[*v1alpha1.Task](t)(p.Tasks().Create(t.Context(), &v1alpha1.Task{ObjectMeta: metav1.ObjectMeta{Name: "asks"}, Spec: v1alpha1.TaskSpec{
		Type: v1alpha1.TaskTypeAI, Prompt: "ask", AgentRef: &v1alpha1.NamespacedReference{Name: "careful"},
	}}, metav1.CreateOptions{}))
	var asked []string // what the task says about each approval
	for len(asked) < 2 {
		p.AwaitTask("asks", func(t *v1alpha1.Task) bool {
			c := meta.FindStatusCondition(t.Status.Conditions, v1alpha1.ConditionWaitingForApproval)
			if c == nil || c.Status != metav1.ConditionTrue || slices.Contains(asked, c.Message) {
				return t.Status.Phase.Terminal()
			}
			asked = append(asked, c.Message)
			return true
		})
		if out, errs, code := standalone.Command(t.Context(), p.Kubeconfig, "task", "approve", "asks", "--yes"); code != 0 {
			t.Fatalf("after %q: %s%s", asked, out, errs)
		}
	}
	p.AwaitPhase("asks", v1alpha1.TaskSucceeded)
	kit.Await(t, "Events", func() bool { // they are written after the status
		got := map[string]bool{}
		for _, e := range kit.Must[*corev1.EventList](t)(p.Kubernetes(t).CoreV1().Events("default").List(t.Context(), metav1.ListOptions{FieldSelector: "involvedObject.name=asks"})).Items {
			got[e.Reason+" "+e.Message] = true
		}
		return got["ApprovalRequested "+asked[0]] && got["ApprovalDecided decided: "+asked[0]] && got["ApprovalRequested "+asked[1]]
	})
}
