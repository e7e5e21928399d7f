// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package integration

import (
	"os"
	"strings"
	"testing"

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
