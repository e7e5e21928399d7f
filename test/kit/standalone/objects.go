// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package standalone

import (
	"fmt"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"

	"github.com/platform-ai/platform/pkg/apis/core/v1alpha1"
	core "github.com/platform-ai/platform/pkg/generated/clientset/versioned/typed/core/v1alpha1"
	"github.com/platform-ai/platform/test/kit"
)

// The resources that tests of clients without types use.
var (
	Tasks           = v1alpha1.SchemeGroupVersion.WithResource("tasks")
	Agents          = v1alpha1.SchemeGroupVersion.WithResource("agents")
	ExecutionEvents = v1alpha1.SchemeGroupVersion.WithResource("executionevents")
)

// TasksPath is the native path of tasks in namespace default.
const TasksPath = "/apis/core.platform.ai/v1alpha1/namespaces/default/tasks"

// In is the administrator's client of a resource in namespace default.
func (s *Server) In(t testing.TB, r schema.GroupVersionResource) dynamic.ResourceInterface {
	t.Helper()
	return s.Dynamic(t).Resource(r).Namespace(metav1.NamespaceDefault)
}

// Task is a container task; set changes fields below spec ("timeout", "1m").
func Task(name string, set ...any) *unstructured.Unstructured {
	u := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "core.platform.ai/v1alpha1", "kind": "Task",
		"metadata": map[string]any{"name": name},
		"spec":     map[string]any{"type": "container", "command": []any{"true"}},
	}}
	for i := 0; i+1 < len(set); i += 2 {
		if err := unstructured.SetNestedField(u.Object, set[i+1], append([]string{"spec"}, strings.Split(set[i].(string), ".")...)...); err != nil {
			panic(err)
		}
	}
	return u
}

// Source makes a task with n messages in its stream, which no run adds to.
func Source(t testing.TB, c core.CoreV1alpha1Interface, name string, n int) *v1alpha1.Task {
	t.Helper()
	task := kit.Must[*v1alpha1.Task](t)(c.Tasks("default").Create(t.Context(), &v1alpha1.Task{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: v1alpha1.TaskSpec{
		Type: v1alpha1.TaskTypeAI, Prompt: "find it", Schedule: "@daily", Suspend: true, AI: &v1alpha1.TaskAI{Provider: v1alpha1.ProviderOpenAI, Model: "m"},
	}}, metav1.CreateOptions{}))
	batch := &v1alpha1.ExecutionEventList{}
	for i := range n {
		batch.Items = append(batch.Items, v1alpha1.ExecutionEvent{Type: v1alpha1.EventModelMessage, ContentText: fmt.Sprintf("thought %d", i+1)})
	}
	if _, err := c.Tasks("default").AppendEvents(t.Context(), name, batch, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	return task
}
