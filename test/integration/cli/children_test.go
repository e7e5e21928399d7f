// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/platform-ai/platform/pkg/apis/core/v1alpha1"
	"github.com/platform-ai/platform/test/kit"
	"github.com/platform-ai/platform/test/kit/standalone"
)

// TestCommandChildren: a task whose author wrote the label of children is no child, and a time zone alone is no schedule.
func TestCommandChildren(t *testing.T) {
	t.Parallel()
	s := standalone.Start(t)
	parent, _ := s.RESTTask(t, "parent")
	for _, name := range []string{"child", "stranger"} {
		task := &v1alpha1.Task{
			ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{v1alpha1.LabelParentTask: "parent"}},
			Spec:       v1alpha1.TaskSpec{Type: v1alpha1.TaskTypeContainer, Command: []string{"true"}},
		}
		if name == "child" {
			task.OwnerReferences = []metav1.OwnerReference{*metav1.NewControllerRef(parent, v1alpha1.SchemeGroupVersion.WithKind("Task"))}
		}
		kit.Must[*v1alpha1.Task](t)(s.Core(t).Tasks("default").Create(t.Context(), task, metav1.CreateOptions{}))
	}
	if out, errs, code := standalone.Command(t.Context(), s.Kubeconfig, "task", "children", "parent", "-o", "name"); code != 0 || out != "task.core.platform.ai/child\n" {
		t.Errorf("exit code %d\n%s%s", code, out, errs)
	}
	out, errs, code := standalone.Command(t.Context(), s.Kubeconfig, "task", "describe", "parent")
	if code != 0 || !strings.Contains(out, "\nChildren\n  child") || strings.Contains(out, "stranger") || strings.Contains(out, "Schedule:") {
		t.Errorf("exit code %d\n%s%s", code, out, errs)
	}
}
