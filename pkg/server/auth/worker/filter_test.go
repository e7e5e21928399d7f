// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package worker

import (
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apiserver/pkg/authentication/serviceaccount"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/endpoints/request"

	"github.com/platform-ai/platform/pkg/apis/core/v1alpha1"
)

// answer returns the status code that a client would get for err: 200, 403 or
// 503.
func answer(t *testing.T, err error) int {
	t.Helper()
	r, refused := errors.AsType[*refusal](err)
	switch {
	case err == nil:
		return 200
	case !refused:
		t.Fatal(err)
	case r.later:
		return 503
	}
	return 403
}

func TestCurrent(t *testing.T) {
	c := &chain{pod: podRef{name: "p", uid: "pod"}, job: ref{"t-1", "job"}, run: "run", task: ref{"t", "task"}}
	for _, tc := range []struct {
		name    string
		uid     types.UID
		status  v1alpha1.TaskStatus
		appends bool
		want    int
	}{
		{"the attempt that is published", "task", v1alpha1.TaskStatus{JobName: "t-1", JobUID: "job", PodUID: "pod"}, false, 200},
		{"the Pod is not published", "task", v1alpha1.TaskStatus{JobName: "t-1", JobUID: "job"}, true, 503},
		{"another Pod of the Job", "task", v1alpha1.TaskStatus{JobName: "t-1", JobUID: "job", PodUID: "other"}, true, 403},
		{"nothing is published", "task", v1alpha1.TaskStatus{}, false, 503},
		{"the name alone is published", "task", v1alpha1.TaskStatus{JobName: "t-1"}, false, 503},
		{"the run is published, not yet the Job", "task", v1alpha1.TaskStatus{JobName: "t-1", JobUID: "run"}, true, 503},
		{"a later attempt", "task", v1alpha1.TaskStatus{JobName: "t-2", JobUID: "run"}, true, 403},
		{"another Job of the name", "task", v1alpha1.TaskStatus{JobName: "t-1", JobUID: "other"}, false, 403},
		{"another Task of the name", "other", v1alpha1.TaskStatus{JobName: "t-1", JobUID: "job"}, true, 403},
		{"an ended task", "task", v1alpha1.TaskStatus{Phase: v1alpha1.TaskFailed, JobName: "t-1", JobUID: "job"}, false, 403},
		{"an ended task whose status names nothing", "task", v1alpha1.TaskStatus{Phase: v1alpha1.TaskCancelled}, false, 403},
		{"an append to an ended task", "task", v1alpha1.TaskStatus{Phase: v1alpha1.TaskFailed, JobName: "t-1", JobUID: "job"}, true, 200},
	} {
		task := &v1alpha1.Task{ObjectMeta: metav1.ObjectMeta{Name: "t", UID: tc.uid}, Status: tc.status}
		if got := answer(t, current(c, task, tc.appends)); got != tc.want {
			t.Errorf("%s: got %d, want %d", tc.name, got, tc.want)
		}
	}
	unnamed := &chain{job: c.job, task: c.task}
	task := &v1alpha1.Task{ObjectMeta: metav1.ObjectMeta{UID: "task"}, Status: v1alpha1.TaskStatus{JobName: "t-1", JobUID: "other"}}
	if err := current(unnamed, task, false); answer(t, err) != 403 {
		t.Errorf("a Job without the annotation: %v", err)
	}
}

func TestOwners(t *testing.T) {
	own := func(version, kind string, controls bool) []metav1.OwnerReference {
		return []metav1.OwnerReference{{APIVersion: version, Kind: kind, Name: "o", UID: "u", Controller: &controls}}
	}
	for _, tc := range []struct {
		name   string
		owners []metav1.OwnerReference
		job    int
		task   int
	}{
		{"a Job", own("batch/v1", "Job", true), 200, 403},
		{"a Task", own("core.platform.ai/v1alpha1", "Task", true), 403, 200},
		{"a Task of a later version", own("core.platform.ai/v1", "Task", true), 403, 200},
		{"a Task of another group", own("platform.ai/v1alpha1", "Task", true), 403, 403},
		{"a Job of another group", own("core.platform.ai/v1alpha1", "Job", true), 403, 403},
		{"owners that do not control", append(own("batch/v1", "Job", false), own("core.platform.ai/v1alpha1", "Task", false)...), 403, 403},
		{"a broken version", own("a/b/c", "Job", true), 403, 403},
		{"nobody", nil, 403, 403},
	} {
		meta := metav1.ObjectMeta{Name: "x", UID: "x", OwnerReferences: tc.owners}
		_, jobErr := jobOf(&corev1.Pod{ObjectMeta: meta}, "x")
		_, taskErr := taskOf(&batchv1.Job{ObjectMeta: meta}, "x")
		if got := answer(t, jobErr); got != tc.job {
			t.Errorf("a Pod controlled by %s: got %d, want %d", tc.name, got, tc.job)
		}
		if got := answer(t, taskErr); got != tc.task {
			t.Errorf("a Job controlled by %s: got %d, want %d", tc.name, got, tc.task)
		}
	}
	for phase, want := range map[corev1.PodPhase]int{
		corev1.PodPending: 200, corev1.PodRunning: 200, corev1.PodUnknown: 200, corev1.PodSucceeded: 403, corev1.PodFailed: 403,
	} {
		pod := &corev1.Pod{
			ObjectMeta: metav1.ObjectMeta{UID: "x", OwnerReferences: own("batch/v1", "Job", true)},
			Status:     corev1.PodStatus{Phase: phase},
		}
		if _, err := jobOf(pod, "x"); answer(t, err) != want {
			t.Errorf("a Pod that is %s: %v", phase, err)
		}
		if _, err := jobOf(pod, "y"); answer(t, err) != 403 {
			t.Errorf("a Pod of another UID: %v", err)
		}
	}
}

// Whoever may add an ephemeral container to a Pod could use the worker's token in it.
func TestEphemeralContainers(t *testing.T) {
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{
		Name: "p", UID: "x", OwnerReferences: []metav1.OwnerReference{{APIVersion: "batch/v1", Kind: "Job", Name: "o", UID: "u", Controller: new(true)}},
	}}
	if _, err := jobOf(pod, "x"); err != nil {
		t.Fatal(err)
	}
	pod.Spec.EphemeralContainers = []corev1.EphemeralContainer{{EphemeralContainerCommon: corev1.EphemeralContainerCommon{Name: "debugger"}}}
	if _, err := jobOf(pod, "x"); answer(t, err) != 403 || !strings.Contains(err.Error(), "Pod p has ephemeral containers") {
		t.Error(err)
	}
}

func TestPodOf(t *testing.T) {
	name, uid := serviceaccount.PodNameKey, serviceaccount.PodUIDKey
	for want, extras := range map[int][]map[string][]string{
		200: {{name: {"p"}, uid: {"u"}}},
		403: {nil, {name: {"p"}}, {uid: {"u"}}, {name: {"p", "q"}, uid: {"u"}}, {name: {"p"}, uid: {"u", "u"}}, {name: {""}, uid: {"u"}}, {name: {"p"}, uid: {}}},
	} {
		for _, e := range extras {
			if _, err := podOf(&user.DefaultInfo{Extra: e}); answer(t, err) != want {
				t.Errorf("%v: %v, want %d", e, err, want)
			}
		}
	}
}

func TestWorkerAccount(t *testing.T) {
	for name, want := range map[string]bool{
		"system:serviceaccount:a:platform-ai-worker":        true,
		"system:serviceaccount:a:platform-agent-worker":     true,
		"system:serviceaccount:a:platform-container-worker": true,
		"system:serviceaccount:a:platform-worker":           false,
		"system:serviceaccount:a:platform-controller":       false,
		"system:serviceaccount::platform-ai-worker":         false,
		"platform-ai-worker":                                false,
		"system:apiserver":                                  false,
	} {
		if _, _, ok := workerAccount(&user.DefaultInfo{Name: name}); ok != want {
			t.Errorf("%s: %t", name, ok)
		}
	}
}

// TestExtras checks that the extras of a task are those that were established,
// whatever the caller sent, and that the caller itself is not modified.
func TestExtras(t *testing.T) {
	brought := func() *user.DefaultInfo {
		return &user.DefaultInfo{Name: "n", UID: "u", Groups: []string{"g"}, Extra: map[string][]string{
			"kept": {"1"}, v1alpha1.ExtraTaskName: {"forged"}, v1alpha1.ExtraTaskUID: {"forged"}, "core.platform.ai/task-other": {"forged"},
		}}
	}
	u := brought()
	if diff := cmp.Diff(user.Info(&user.DefaultInfo{Name: "n", UID: "u", Groups: []string{"g"}, Extra: map[string][]string{"kept": {"1"}}}), withExtras(u, nil)); diff != "" {
		t.Errorf("not proved (-want +got):\n%s", diff)
	}
	want := user.Info(&user.DefaultInfo{Name: "n", UID: "u", Groups: []string{"g"}, Extra: map[string][]string{
		"kept": {"1"}, v1alpha1.ExtraTaskName: {"t"},
	}})
	if diff := cmp.Diff(want, withExtras(u, map[string]string{v1alpha1.ExtraTaskName: "t"})); diff != "" {
		t.Errorf("proved (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(brought(), u); diff != "" {
		t.Errorf("the caller was changed:\n%s", diff)
	}
	if plain := (&user.DefaultInfo{Name: "n"}); withExtras(plain, nil) != user.Info(plain) {
		t.Error("a caller without such extras was copied")
	}
}

func TestIsAppend(t *testing.T) {
	for _, tc := range []struct {
		verb, resource, subresource string
		want                        bool
	}{
		{"create", "tasks", "events", true},
		{"create", "executionevents", "", true},
		{"get", "tasks", "events", false},
		{"create", "tasks", "result", false},
		{"create", "executionevents", "controlled", false},
		{"create", "tasks", "", false},
	} {
		if got := isAppend(&request.RequestInfo{Verb: tc.verb, Resource: tc.resource, Subresource: tc.subresource}); got != tc.want {
			t.Errorf("%s %s/%s: %t", tc.verb, tc.resource, tc.subresource, got)
		}
	}
}
