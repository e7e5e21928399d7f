// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package monitor

import (
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/platform-ai/platform/pkg/apis/core/v1alpha1"
	hook "github.com/platform-ai/platform/pkg/server/webhook"
	"github.com/platform-ai/platform/test/kit"
	"github.com/platform-ai/platform/test/kit/standalone"
)

// taskLabel asks for a task, without a monitor.
const taskLabel = "agent:look"

// TestLabelTask: a label makes a task, once, which reads the repository. Another label beside it makes none, and neither does the same
// delivery again.
func TestLabelTask(t *testing.T) {
	onBoth(t, func(t *testing.T, h codeHost) {
		x := newWatched(t, h, workflowScript, func(o *standalone.Options) {
			o.Webhook.Triggers = hook.Triggers{Agent: "coder", Secret: readRole}
		})
		defer x.end()
		first := h.openIssue(t, "No door", "The shop has no door.\ndo: say looked", "stranger")
		d := x.label(first, taskLabel, "maintainer")
		if d.Status.State != v1alpha1.DeliveryProcessed || len(d.Status.Tasks) != 1 || d.Status.Action != "look" {
			t.Fatalf("%+v, %+v", d.Spec, d.Status)
		}
		task := x.AwaitPhase(d.Status.Tasks[0], v1alpha1.TaskSucceeded)
		if w := task.Spec.Workspace; w.GitRepo != h.location() || w.Intent != v1alpha1.WorkspaceRead || !strings.Contains(task.Spec.Prompt, "The shop has no door.") || task.Annotations["platform.ai/github-sender"] != "maintainer" {
			t.Errorf("%+v, %+v", task.Annotations, w)
		}
		x.again(d)
		if d := x.label(first, "bug", "stranger"); len(d.Status.Tasks) != 0 {
			t.Errorf("another label: %+v", d.Status)
		}
		// Removed and set again, it asks again.
		x.unlabel(first, taskLabel, "maintainer")
		if d := x.label(first, taskLabel, "maintainer"); len(d.Status.Tasks) != 1 || d.Status.Tasks[0] == task.Name {
			t.Errorf("set again: %+v", d.Status)
		}
		second := h.openIssue(t, "No window", "do: say looked", "maintainer", taskLabel)
		d = x.delivered("says that an issue has the label from the beginning", func(d *v1alpha1.CodeHostDelivery) bool {
			return d.Spec.Number == second && len(d.Status.Tasks) == 1
		})
		if h.provider() == v1alpha1.CodeHostGitea && d.Spec.Action != "opened" {
			t.Errorf("%+v", d.Spec)
		}
		x.again(d)
		all := kit.Must[*v1alpha1.TaskList](t)(x.Tasks().List(t.Context(), metav1.ListOptions{}))
		if len(all.Items) != 3 {
			t.Errorf("%d tasks", len(all.Items))
		}
	})
}
