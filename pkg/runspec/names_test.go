// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package runspec_test

import (
	"fmt"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/platform-ai/platform/pkg/apis/core/v1alpha1"
	"github.com/platform-ai/platform/pkg/runspec"
)

func TestNames(t *testing.T) {
	t.Parallel()
	if got := fmt.Sprint(runspec.Names(&v1alpha1.Task{})); got != "[[PLATFORM_AGENT_NAME ] [PLATFORM_PARENT_TASK ] [PLATFORM_SESSION_NAME ]]" {
		t.Errorf("a plain task: %s", got)
	}
	task := &v1alpha1.Task{
		ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{v1alpha1.LabelParentTask: "shortened"}, Annotations: map[string]string{v1alpha1.AnnotationParentTaskName: "boss"}},
		Spec:       v1alpha1.TaskSpec{AgentRef: &v1alpha1.NamespacedReference{Name: "coder"}, SessionRef: &v1alpha1.TaskSessionReference{Name: "talk"}},
	}
	if got := fmt.Sprint(runspec.Names(task)); got != "[[PLATFORM_AGENT_NAME coder] [PLATFORM_PARENT_TASK boss] [PLATFORM_SESSION_NAME talk]]" {
		t.Errorf("a child with agent and session: %s", got)
	}
}
