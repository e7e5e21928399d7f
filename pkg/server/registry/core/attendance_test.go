// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package core_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apiserver/pkg/registry/rest"
	"k8s.io/apiserver/pkg/warning"
	clocktesting "k8s.io/utils/clock/testing"

	"github.com/platform-ai/platform/pkg/apis/core/v1alpha1"
	"github.com/platform-ai/platform/test/kit"
)

// warnings are a server's warnings about a request.
type warnings []string

func (w *warnings) AddWarning(_, text string) { *w = append(*w, text) }

// The status of a task that no controller picks up says so, also after a
// restart. Users who create another task get a warning until there is a
// controller.
func TestTaskWithoutController(t *testing.T) {
	t.Parallel()
	dir, now := t.TempDir(), clocktesting.NewFakeClock(time.Now())
	s := startAt(t, dir, now)
	const text = `{"apiVersion": "core.platform.ai/v1alpha1", "kind": "Task", "metadata": {"name": %q, "namespace": "default"}, "spec": {"type": "container", "command": ["true"]}}`
	create := func(name string) warnings {
		t.Helper()
		obj, err := s.Decode(fmt.Sprintf(text, name))
		if err != nil {
			t.Fatal(err)
		}
		var said warnings
		if _, err := s.Create(warning.WithWarningRecorder(s.User(), &said), "tasks", obj); err != nil {
			t.Fatal(err)
		}
		return said
	}
	get := func(name string) *v1alpha1.Task {
		t.Helper()
		obj, err := s.Storage["tasks"].(rest.Getter).Get(s.User(), name, &metav1.GetOptions{})
		if err != nil {
			t.Fatal(err)
		}
		return obj.(*v1alpha1.Task)
	}
	says := func(name string) {
		t.Helper()
		var k *v1alpha1.Task
		kit.Await(t, "task "+name+" says that it waits", func() bool {
			if k = get(name); meta.IsStatusConditionTrue(k.Status.Conditions, v1alpha1.ConditionWaitingToStart) {
				return true
			}
			now.Step(time.Second)
			return false
		})
		c := meta.FindStatusCondition(k.Status.Conditions, v1alpha1.ConditionWaitingToStart)
		if c.Reason != v1alpha1.ReasonNoController || k.Status.Message != c.Message || !strings.Contains(c.Message, "namespace default") || k.Status.CreationRevision == 0 {
			t.Errorf("status %+v", k.Status)
		}
		if waited := now.Since(k.CreationTimestamp.Time); waited < 29*time.Second {
			t.Errorf("said after %s", waited)
		}
	}
	if said := create("a"); len(said) != 0 {
		t.Errorf("warned before anything is known: %q", said)
	}
	says("a")
	if said := create("b"); len(said) != 1 || !strings.HasPrefix(said[0], "the task will wait: no controller handles tasks of namespace default") {
		t.Errorf("warned %q", said)
	}
	s.Close()
	s = startAt(t, dir, now)
	says("b")

	info := rest.DefaultUpdatedObjectInfo(nil, func(_ context.Context, _, old runtime.Object) (runtime.Object, error) {
		k := old.DeepCopyObject().(*v1alpha1.Task)
		k.Status.Phase = v1alpha1.TaskPending
		return k, nil
	})
	if _, _, err := s.Storage["tasks/status"].(rest.Updater).Update(s.User(), "a", info, rest.ValidateAllObjectFunc, rest.ValidateAllObjectUpdateFunc, false, &metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
	if said := create("c"); len(said) != 0 {
		t.Errorf("warned although a controller is there: %q", said)
	}
}
