// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package task

import (
	"strings"
	"sync"
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/platform-ai/platform/pkg/apis/core/v1alpha1"
	typed "github.com/platform-ai/platform/pkg/generated/clientset/versioned/typed/core/v1alpha1"
	"github.com/platform-ai/platform/test/kit/host"
	"github.com/platform-ai/platform/test/kit/standalone"
)

func after(s string) *intstr.IntOrString { v := intstr.Parse(s); return &v }

// types are the event types of a task, in order.
func eventTypes(t *testing.T, c typed.CoreV1alpha1Interface, task string) []string {
	t.Helper()
	list, err := c.ExecutionEvents("default").List(t.Context(), metav1.ListOptions{FieldSelector: "taskName=" + task})
	if err != nil {
		t.Fatal(err)
	}
	var types []string
	for _, e := range list.Items {
		types = append(types, string(e.Type))
	}
	return types
}

func TestFork(t *testing.T) {
	t.Parallel()
	c := standalone.Start(t).Core(t)
	src := standalone.Source(t, c, "src", 5)
	tasks := c.Tasks("default")
	// The source has ended, as is usual for forks.
	_, err := tasks.AppendEvent(t.Context(), "src", &v1alpha1.ExecutionEvent{Type: v1alpha1.EventTaskSucceeded}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	f, err := tasks.Fork(t.Context(), "src", &v1alpha1.TaskFork{Spec: v1alpha1.TaskForkSpec{AfterSeq: after("3"), NewTaskName: "second", Prompt: "find another"}}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	st := f.Status
	if st.NewTaskName != "second" || st.SourceTaskName != "src" || st.Namespace != "default" || st.AfterSeq != 3 || st.Replayed || len(st.ForkContext.Events) != 3 || st.ForkContext.Truncated {
		t.Errorf("status %+v", st)
	}
	made, err := tasks.Get(t.Context(), "second", metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if made.Spec.Schedule != "" || made.Spec.Suspend || made.Spec.AI.Model != "m" || !strings.HasSuffix(made.Spec.Prompt, "\n\nfind another") ||
		!strings.Contains(made.Spec.Prompt, "thought 3") || strings.Contains(made.Spec.Prompt, "thought 4") {
		t.Errorf("spec %+v", made.Spec)
	}
	for key, want := range map[string]string{
		v1alpha1.AnnotationForkSourceTask: "src", v1alpha1.AnnotationForkSourceSeq: "3", v1alpha1.AnnotationForkContextTruncated: "false",
		v1alpha1.AnnotationParentTaskName: "src", v1alpha1.AnnotationForkSourceUID: string(src.UID), v1alpha1.AnnotationDisableCoordination: "true",
	} {
		if made.Annotations[key] != want {
			t.Errorf("annotation %s is %q, want %q", key, made.Annotations[key], want)
		}
	}
	if made.Labels[v1alpha1.LabelParentTask] != "src" {
		t.Errorf("labels %v", made.Labels)
	}
	if got := strings.Join(eventTypes(t, c, "src")[5:], " "); got != "TaskSucceeded TaskForkRequested TaskForkCreated" {
		t.Errorf("the source tells %s", got)
	}
	if got := strings.Join(eventTypes(t, c, "second"), " "); got != "TaskForkCreated" {
		t.Errorf("the fork tells %s", got)
	}
	// A fork of the fork has both histories before one prompt.
	if _, err = tasks.Fork(t.Context(), "second", &v1alpha1.TaskFork{Spec: v1alpha1.TaskForkSpec{NewTaskName: "third", AfterSeq: after("latest")}}, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	if made, err = tasks.Get(t.Context(), "third", metav1.GetOptions{}); err != nil {
		t.Fatal(err)
	}
	if strings.Count(made.Spec.Prompt, "<fork-context ") != 2 || strings.Count(made.Spec.Prompt, "find another") != 1 {
		t.Errorf("prompt %q", made.Spec.Prompt)
	}
}

func TestForkIsRefused(t *testing.T) {
	t.Parallel()
	c := standalone.Start(t).Core(t)
	standalone.Source(t, c, "src", 2)
	digest := "sha256:" + strings.Repeat("a", 64)
	for _, tc := range []struct {
		name, task string
		spec       v1alpha1.TaskForkSpec
		is         func(error) bool
		says       string
	}{
		{"unknown source", "none", v1alpha1.TaskForkSpec{}, apierrors.IsNotFound, `"none" not found`},
		{"name taken", "src", v1alpha1.TaskForkSpec{NewTaskName: "src"}, apierrors.IsAlreadyExists, "already exists"},
		{"name taken, with a key", "src", v1alpha1.TaskForkSpec{NewTaskName: "src", IdempotencyKey: "k"}, apierrors.IsAlreadyExists, "already exists"},
		{"negative", "src", v1alpha1.TaskForkSpec{AfterSeq: after("-1")}, apierrors.IsBadRequest, "spec.afterSeq: -1: must not be negative"},
		{"beyond the end", "src", v1alpha1.TaskForkSpec{AfterSeq: after("3")}, apierrors.IsBadRequest, "the newest event of task \"src\" is 2"},
		{"no number", "src", v1alpha1.TaskForkSpec{AfterSeq: after("newest")}, apierrors.IsBadRequest, `"newest": must be a number or "latest"`},
		{"bad digest", "src", v1alpha1.TaskForkSpec{ExecutionCheckpoint: &v1alpha1.ExecutionCheckpointReference{Name: "c", UID: "u", Digest: "sha256:AA"}}, apierrors.IsBadRequest, "spec.executionCheckpoint.digest"},
		{"no saved data", "src", v1alpha1.TaskForkSpec{ExecutionCheckpoint: &v1alpha1.ExecutionCheckpointReference{Name: "c", UID: "u", Digest: digest}}, apierrors.IsBadRequest, "class-backed workspace"},
		{"too large", "src", v1alpha1.TaskForkSpec{Prompt: strings.Repeat("x", 1<<20)}, apierrors.IsRequestEntityTooLargeError, "1048576"},
		{"bad agent", "src", v1alpha1.TaskForkSpec{AgentRef: &v1alpha1.NamespacedReference{Name: "Not A Name"}}, apierrors.IsInvalid, "agentRef"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			_, err := c.Tasks("default").Fork(t.Context(), tc.task, &v1alpha1.TaskFork{Spec: tc.spec}, metav1.CreateOptions{})
			if !tc.is(err) || !strings.Contains(err.Error(), tc.says) {
				t.Errorf("got %v", err)
			}
		})
	}
	if got := eventTypes(t, c, "src"); len(got) != 2 {
		t.Errorf("a refused fork left events: %v", got)
	}
}

func TestForkIsIdempotent(t *testing.T) {
	t.Parallel()
	c := standalone.Start(t).Core(t)
	standalone.Source(t, c, "src", 4)
	spec := v1alpha1.TaskForkSpec{AfterSeq: after("2"), IdempotencyKey: "once"}
	const callers = 64
	names, fresh := make([]string, callers), make([]bool, callers)
	var all sync.WaitGroup
	for i := range callers {
		all.Go(func() {
			f, err := c.Tasks("default").Fork(t.Context(), "src", &v1alpha1.TaskFork{Spec: spec}, metav1.CreateOptions{})
			if err != nil {
				t.Error(err)
				return
			}
			names[i], fresh[i] = f.Status.NewTaskName, !f.Status.Replayed
		})
	}
	all.Wait()
	made := 0
	for i := range callers {
		if names[i] != names[0] {
			t.Errorf("two names: %s and %s", names[0], names[i])
		}
		if fresh[i] {
			made++
		}
	}
	if made != 1 {
		t.Errorf("%d requests made the task", made)
	}
	if got := strings.Join(eventTypes(t, c, "src")[4:], " "); got != "TaskForkRequested TaskForkCreated" {
		t.Errorf("the source tells %s", got)
	}
	if got := strings.Join(eventTypes(t, c, names[0]), " "); got != "TaskForkCreated" {
		t.Errorf("the fork tells %s", got)
	}

	checkpoint := &v1alpha1.ExecutionCheckpointReference{Name: "c", UID: "u", Digest: "sha256:" + strings.Repeat("0", 64)}
	for _, tc := range []struct {
		name string
		spec v1alpha1.TaskForkSpec
		says string // empty: it is replayed
	}{
		{"the same", spec, ""},
		{"the newest event, which has moved", v1alpha1.TaskForkSpec{IdempotencyKey: "once"}, ""},
		{"another sequence", v1alpha1.TaskForkSpec{AfterSeq: after("1"), IdempotencyKey: "once"}, "afterSeq 2"},
		{"a checkpoint more", v1alpha1.TaskForkSpec{AfterSeq: after("2"), IdempotencyKey: "once", ExecutionCheckpoint: checkpoint}, "another executionCheckpoint"},
	} {
		f, err := c.Tasks("default").Fork(t.Context(), "src", &v1alpha1.TaskFork{Spec: tc.spec}, metav1.CreateOptions{})
		switch {
		case tc.says == "" && (err != nil || !f.Status.Replayed || f.Status.NewTaskName != names[0] || f.Status.AfterSeq != 2):
			t.Errorf("%s: %+v, %v", tc.name, f, err)
		case tc.says != "" && (!apierrors.IsConflict(err) || !strings.Contains(err.Error(), tc.says)):
			t.Errorf("%s: %v", tc.name, err)
		}
	}
}

// TestForkNeedsBothPermissions: whoever may fork but not create tasks cannot make one by forking, and whoever may not get
// the source cannot read it through a fork.
func TestForkNeedsBothPermissions(t *testing.T) {
	t.Parallel()
	s := standalone.Start(t)
	c := s.Core(t)
	standalone.Source(t, c, "src", 1)
	grant := func(name string, rules ...rbacv1.PolicyRule) typed.TaskInterface {
		return s.Granted(t, name, rules...).Tasks("default")
	}
	forker := grant("forker", host.Can("create", "tasks/fork"), host.Can("get", "tasks"))
	if _, err := forker.Fork(t.Context(), "src", &v1alpha1.TaskFork{Spec: v1alpha1.TaskForkSpec{}}, metav1.CreateOptions{}); !apierrors.IsForbidden(err) || !strings.Contains(err.Error(), `cannot create resource "tasks"`) {
		t.Errorf("got %v", err)
	}
	creator := grant("creator", host.Can("create", "tasks"))
	if _, err := creator.Fork(t.Context(), "src", &v1alpha1.TaskFork{Spec: v1alpha1.TaskForkSpec{}}, metav1.CreateOptions{}); !apierrors.IsForbidden(err) {
		t.Errorf("got %v", err)
	}
	if got := eventTypes(t, c, "src"); len(got) != 1 {
		t.Errorf("a refused fork left events: %v", got)
	}
	blind := grant("blind", host.Can("create", "tasks", "tasks/fork"))
	if _, err := blind.Fork(t.Context(), "src", &v1alpha1.TaskFork{Spec: v1alpha1.TaskForkSpec{}}, metav1.CreateOptions{}); !apierrors.IsForbidden(err) || !strings.Contains(err.Error(), "needs the right to get it") {
		t.Errorf("got %v", err)
	}
	another := host.Can("get", "tasks")
	another.ResourceNames = []string{"another"}
	elsewhere := grant("elsewhere", host.Can("create", "tasks", "tasks/fork"), another)
	if _, err := elsewhere.Fork(t.Context(), "src", &v1alpha1.TaskFork{Spec: v1alpha1.TaskForkSpec{}}, metav1.CreateOptions{}); !apierrors.IsForbidden(err) {
		t.Errorf("got %v", err)
	}
	one := host.Can("get", "tasks")
	one.ResourceNames = []string{"src"}
	both := grant("both", host.Can("create", "tasks", "tasks/fork"), one)
	if _, err := both.Fork(t.Context(), "src", &v1alpha1.TaskFork{Spec: v1alpha1.TaskForkSpec{}}, metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}}); err != nil {
		t.Fatal(err)
	}
	if got := eventTypes(t, c, "src"); len(got) != 1 {
		t.Errorf("a dry run left events: %v", got)
	}
	if f, err := both.Fork(t.Context(), "src", &v1alpha1.TaskFork{Spec: v1alpha1.TaskForkSpec{}}, metav1.CreateOptions{}); err != nil || !strings.HasPrefix(f.Status.NewTaskName, "src-fork-") {
		t.Errorf("got %+v, %v", f, err)
	}
}
