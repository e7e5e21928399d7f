// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

// Package kubernetes tests the Kubernetes executor with a real cluster and a real node.
package kubernetes

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/uuid"
	clientset "k8s.io/client-go/kubernetes"

	"github.com/platform-ai/platform/pkg/apis/core/v1alpha1"
	"github.com/platform-ai/platform/pkg/controller/executor"
	"github.com/platform-ai/platform/pkg/controller/executor/kubernetes"
	"github.com/platform-ai/platform/pkg/plan"
	"github.com/platform-ai/platform/test/kit"
	"github.com/platform-ai/platform/test/kit/cluster"
	"github.com/platform-ai/platform/test/quickclock"
)

const (
	image = "test.example/worker:1"
	// otherImage has the same program, but is not the worker image, so an init container puts the program into it.
	otherImage = "test.example/other:1"
)

var images sync.Once

// fixture is one namespace of the cluster, with an executor.
type fixture struct {
	*cluster.Cluster
	client    clientset.Interface
	namespace string
	options   kubernetes.Options
	runs      *kubernetes.Executor
	exits     chan executor.Ref
	// heard has the ends that were reported while the test waited for another one.
	heard map[executor.Ref]bool
}

// newFixture makes a namespace and an executor, which runs until the test ends.
func newFixture(t *testing.T, change func(*kubernetes.Options)) *fixture {
	t.Helper()
	c := cluster.Node(t)
	images.Do(func() { loadImages(t, c) })
	client, err := clientset.NewForConfig(c.Config())
	if err != nil {
		t.Fatal(err)
	}
	f := &fixture{Cluster: c, client: client}
	ns, err := client.CoreV1().Namespaces().Create(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{
		GenerateName: "runs-", Labels: map[string]string{"pod-security.kubernetes.io/enforce": "restricted"}, // the strictest level that a namespace can require
	}}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	f.namespace = ns.Name
	t.Cleanup(func() {
		if err := client.CoreV1().Namespaces().Delete(context.WithoutCancel(t.Context()), ns.Name, metav1.DeleteOptions{}); err != nil {
			t.Error(err)
		}
	})
	account := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Name: v1alpha1.ServiceAccountContainerWorker}}
	if _, err := client.CoreV1().ServiceAccounts(f.namespace).Create(t.Context(), account, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	f.options = kubernetes.Options{
		Client: client, Namespaces: []string{f.namespace}, WorkerImage: image,
		Store: func(context.Context) (string, error) { return "store", nil },
	}
	if change != nil {
		change(&f.options)
	}
	f.restart(t)
	return f
}

// restart makes a new executor, as a restarted controller does; the previous one keeps running until the test ends.
func (f *fixture) restart(t *testing.T) (stop func()) {
	t.Helper()
	runs, err := kubernetes.New(f.options)
	if err != nil {
		t.Fatal(err)
	}
	exits := make(chan executor.Ref, 100)
	ctx, cancel := context.WithCancel(t.Context())
	runs.OnExit(ctx, func(r executor.Ref) { exits <- r })
	done := make(chan error, 1)
	go func() { done <- runs.Run(ctx) }()
	f.runs, f.exits, f.heard = runs, exits, map[executor.Ref]bool{}
	var once sync.Once
	stop = func() {
		once.Do(func() {
			cancel()
			if err := <-done; err != nil {
				t.Error(err)
			}
		})
	}
	t.Cleanup(stop)
	return stop
}

// stranger runs the executor of another installation, which has no patience, beside the one of the test.
func (f *fixture) stranger(t *testing.T) {
	t.Helper()
	o := f.options
	o.Store, o.StartTimeout = func(context.Context) (string, error) { return "another store", nil }, time.Nanosecond
	runs, err := kubernetes.New(o)
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan error, 1)
	ctx, cancel := context.WithCancel(t.Context())
	go func() { done <- runs.Run(ctx) }()
	t.Cleanup(func() {
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
}

// loadImages makes two images of this test binary.
func loadImages(t *testing.T, c *cluster.Cluster) {
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{image, otherImage} {
		tarball := filepath.Join(t.TempDir(), "image.tar")
		tool := exec.Command("../../_output/cluster/bin/images", "-name", name, "-o", tarball, "-user", "1000:1000", "-entrypoint", "/worker", self+"=/worker")
		if out, err := tool.CombinedOutput(); err != nil {
			t.Fatalf("image: %v: %s", err, out)
		}
		c.LoadImages(t, tarball)
	}
}

// start starts a container task whose worker acts according to the mode.
func (f *fixture) start(t *testing.T, mode string, change ...func(*executor.Run)) executor.Run {
	t.Helper()
	uid := uuid.NewUUID()
	task := &v1alpha1.Task{
		ObjectMeta: metav1.ObjectMeta{Namespace: f.namespace, Name: mode + "-" + string(uid[:5]), UID: uid},
		Spec: v1alpha1.TaskSpec{
			Type: v1alpha1.TaskTypeContainer, Command: []string{"true"}, Env: []corev1.EnvVar{{Name: envMode, Value: mode}},
		},
	}
	run := executor.Run{
		Ref: executor.Ref{Namespace: task.Namespace, Name: task.Name, UID: uid, Attempt: 1}, Task: task, ID: string(uuid.NewUUID()),
		Resources: &corev1.ResourceRequirements{Limits: corev1.ResourceList{corev1.ResourceMemory: resource.MustParse("128Mi")}},
	}
	for _, c := range change {
		c(&run)
	}
	state, err := f.runs.Start(t.Context(), run)
	if err != nil {
		t.Fatal(err)
	}
	if state.Phase != executor.Running || state.ID != run.ID || state.UID == "" {
		t.Fatalf("state of a new run: %+v", state)
	}
	// There is no Task, so if its kind were served, the garbage collector would remove the Job.
	_, err = f.client.BatchV1().Jobs(f.namespace).Patch(t.Context(), run.JobName(), types.MergePatchType, []byte(`{"metadata":{"ownerReferences":null}}`), metav1.PatchOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return run
}

// exited waits until the executor reports the run's end, and returns its state.
func (f *fixture) exited(t *testing.T, run executor.Run) executor.State {
	t.Helper()
	f.told(t, run.Ref)
	state, err := f.runs.State(t.Context(), run.Ref)
	if err != nil {
		t.Fatal(err)
	}
	if state.Phase == executor.Running {
		t.Fatalf("told of the end of a run that is not over: %+v", state)
	}
	return state
}

func (f *fixture) told(t *testing.T, ref executor.Ref) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), kit.Patience)
	defer cancel()
	for !f.heard[ref] {
		select {
		case r := <-f.exits:
			f.heard[r] = true
		case <-ctx.Done():
			f.describe(t)
			t.Fatalf("nobody told of the end of %s", ref)
		}
	}
}

// ofRun selects the Job and the Pod of a run.
func ofRun(run executor.Run) metav1.ListOptions {
	return metav1.ListOptions{LabelSelector: "platform.ai/task-uid=" + string(run.UID)}
}

// running waits until the worker's container runs, and returns its pod.
func (f *fixture) running(t *testing.T, run executor.Run) *corev1.Pod {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), kit.Patience)
	defer cancel()
	w, err := f.client.CoreV1().Pods(f.namespace).Watch(ctx, ofRun(run))
	if err != nil {
		t.Fatal(err)
	}
	defer w.Stop()
	for ev := range w.ResultChan() {
		pod, ok := ev.Object.(*corev1.Pod)
		if ok && len(pod.Status.ContainerStatuses) > 0 && pod.Status.ContainerStatuses[0].State.Running != nil {
			return pod
		}
	}
	f.describe(t)
	t.Fatal("the run does not start")
	return nil
}

// describe logs the objects of the namespace.
func (f *fixture) describe(t *testing.T) {
	t.Log(f.Kubectl(t, "-n", f.namespace, "get", "jobs,pods,events", "-o", "wide"))
}

func withMemory(limit string) func(*executor.Run) {
	return func(r *executor.Run) {
		r.Resources = &corev1.ResourceRequirements{Limits: corev1.ResourceList{corev1.ResourceMemory: resource.MustParse(limit)}}
	}
}

func TestEnds(t *testing.T) {
	t.Parallel()
	f := newFixture(t, nil)
	for _, tc := range []struct {
		mode   string
		change func(*executor.Run)
		check  func(executor.State) bool
	}{
		{"look", nil, func(s executor.State) bool {
			return s.Succeeded() && s.Termination != nil && s.Termination.Reason == "Looked"
		}},
		{"fail", nil, func(s executor.State) bool {
			return !s.Succeeded() && s.ExitCode == 1 && s.Termination != nil && s.Termination.Reason == "ModelQuotaExhausted" && s.Reason == ""
		}},
		{"silent", nil, func(s executor.State) bool {
			return s.Phase == executor.Exited && s.ExitCode == 3 && s.Termination == nil && strings.Contains(s.Message, "nothing works") && !strings.Contains(s.Message, "sk-proj-abc")
		}},
		{"kill", nil, func(s executor.State) bool {
			return s.Phase == executor.Exited && s.ExitCode == -1 && s.Signal == "killed" && s.Reason == "" && !s.Succeeded()
		}},
		{"memory", withMemory("64Mi"), func(s executor.State) bool {
			return s.Phase == executor.Exited && s.Reason == v1alpha1.ReasonOOMKilled && strings.Contains(s.Message, "64Mi")
		}},
		{"wait", func(r *executor.Run) { r.Timeout = 3 * time.Second }, func(s executor.State) bool {
			return s.Phase == executor.Exited && s.Cause == executor.CauseDeadline && s.Reason == "" && !s.Succeeded()
		}},
		{"look", func(r *executor.Run) { r.Task.Spec.Image = otherImage }, func(s executor.State) bool {
			return s.Succeeded() && strings.Contains(s.Termination.Message, "program=/platform/platform-worker")
		}},
	} {
		t.Run(tc.mode, func(t *testing.T) {
			change := tc.change
			if change == nil {
				change = func(*executor.Run) {}
			}
			run := f.start(t, tc.mode, change)
			s := f.exited(t, run)
			if !tc.check(s) {
				f.describe(t)
				t.Errorf("%+v, %+v", s, s.Termination)
			}
			// Repeating the same start returns the same run; a different start is refused.
			if again, err := f.runs.Start(t.Context(), run); err != nil || again.UID != s.UID || again.Phase != s.Phase {
				t.Errorf("started again: %+v, %v", again, err)
			}
			other := run
			other.ID = "other"
			if _, err := f.runs.Start(t.Context(), other); !errors.Is(err, executor.ErrConflict) {
				t.Errorf("another start of the attempt: %v", err)
			}
			if err := f.runs.Stop(t.Context(), run.Ref); err != nil {
				t.Errorf("stop of what is over: %v", err)
			}
		})
	}
}

// TestEventsOfRun: what the cluster reports about a Job and its Pod is reported about the Task, where kubectl describe shows it.
func TestEventsOfRun(t *testing.T) {
	t.Parallel()
	f := newFixture(t, nil)
	run := f.start(t, "look", func(*executor.Run) {})
	ctx, cancel := context.WithTimeout(t.Context(), kit.Patience)
	defer cancel()
	w, err := f.client.CoreV1().Events(f.namespace).Watch(ctx, metav1.ListOptions{FieldSelector: "involvedObject.kind=Task,involvedObject.uid=" + string(run.UID)})
	if err != nil {
		t.Fatal(err)
	}
	defer w.Stop()
	for missing := map[string]string{"SuccessfulCreate": "Job", "Scheduled": "Pod", "Started": "Pod", "Completed": "Job"}; len(missing) > 0; {
		select {
		case got := <-w.ResultChan():
			ev, ok := got.Object.(*corev1.Event)
			if !ok && ctx.Err() == nil {
				t.Fatalf("%+v", got)
			}
			if kind, ok := missing[ev.Reason]; ok && ev.Related != nil && ev.Related.Kind == kind && strings.HasPrefix(ev.Message, kind+" "+run.JobName()) &&
				ev.InvolvedObject.Name == run.Name && !ev.LastTimestamp.IsZero() {
				delete(missing, ev.Reason)
			}
		case <-ctx.Done():
			f.describe(t)
			t.Fatalf("not reported: %v", missing)
		}
	}
}

// TestContainer: what the worker finds in its container.
func TestContainer(t *testing.T) {
	t.Parallel()
	f := newFixture(t, nil)
	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: "keys"}, StringData: map[string]string{"k": "value-of-k"}}
	if _, err := f.client.CoreV1().Secrets(f.namespace).Create(t.Context(), secret, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	run := f.start(t, "look", func(r *executor.Run) {
		r.Task.Spec.SecretRef = &v1alpha1.NamespacedReference{Name: "keys"}
		r.Task.Spec.Env = append(r.Task.Spec.Env, corev1.EnvVar{Name: "KEY", ValueFrom: &corev1.EnvVarSource{
			SecretKeyRef: &corev1.SecretKeySelector{LocalObjectReference: corev1.LocalObjectReference{Name: "keys"}, Key: "k"},
		}}, corev1.EnvVar{Name: "PLATFORM_TASK_NAME", Value: "forged"})
		r.Secrets = []plan.Secret{{Use: plan.ForProvider, For: types.NamespacedName{Namespace: "agents", Name: "openai"}, Ref: v1alpha1.KeyReference{Name: "keys", Key: "k"}}}
	})
	s := f.exited(t, run)
	if s.Termination == nil {
		t.Fatalf("no report: %+v", s)
	}
	want := []string{
		"user=1000:1000", "task=" + f.namespace + "/" + run.Name + "#1", "url=https://10.96.0.1:443", "key=value-of-k", "root=false",
		"workspace=true", "artifacts=true", "home=true", "temp=true", "token=true", "ca=true", "default token=false",
		"/secrets/task/k=value-of-k", "/secrets/run/providers/agents/openai=value-of-k", "CapEff=0000000000000000", "NoNewPrivs=1", "Seccomp=2",
	}
	for _, w := range want {
		if !strings.Contains(s.Termination.Message, w) {
			t.Errorf("not %s: %s", w, s.Termination.Message)
		}
	}
}

// TestDoesNotStart: runs that cannot start are ended, and report why.
func TestDoesNotStart(t *testing.T) {
	t.Parallel()
	f := newFixture(t, func(o *kubernetes.Options) { o.StartTimeout = time.Hour }) // until the cluster has reported why
	cases := []struct {
		name, reason, message string
		change                func(*executor.Run)
	}{
		{"image", v1alpha1.ReasonImagePullFailed, "failed to pull", func(r *executor.Run) { r.Task.Spec.Image = "test.example/none:1" }},
		{"name", v1alpha1.ReasonImagePullFailed, "parse image name", func(r *executor.Run) { r.Task.Spec.Image = "Not An Image" }},
		{"mount", v1alpha1.ReasonMountFailed, `secret "none" not found`, func(r *executor.Run) { r.Task.Spec.SecretRef = &v1alpha1.NamespacedReference{Name: "none"} }},
		{"env", v1alpha1.ReasonContainerConfigInvalid, "none", func(r *executor.Run) {
			r.Task.Spec.Env = []corev1.EnvVar{{Name: "X", ValueFrom: &corev1.EnvVarSource{SecretKeyRef: &corev1.SecretKeySelector{LocalObjectReference: corev1.LocalObjectReference{Name: "none"}, Key: "k"}}}}
		}},
		{"node", v1alpha1.ReasonUnschedulable, "node", func(r *executor.Run) { r.Placement.NodeSelector = map[string]string{"no": "such"} }},
		{"account", v1alpha1.ReasonPodNotCreated, "platform-ai-worker", func(r *executor.Run) { r.Task.Spec.Type = v1alpha1.TaskTypeAI }},
	}
	f.stranger(t)
	runs := make([]executor.Run, len(cases))
	for i, tc := range cases {
		runs[i] = f.start(t, "look", tc.change)
	}
	states := make([]executor.State, len(cases))
	for i, tc := range cases {
		if tc.name == "name" { // there is no hope, so the first executor gives it up, and nobody else knows why
			states[i] = f.exited(t, runs[i])
			continue
		}
		kit.Await(t, "a report of why "+tc.name+" does not start", func() bool { return f.reported(t, runs[i], tc.reason) })
	}
	f.options.StartTimeout = time.Second
	f.restart(t)
	for i, tc := range cases {
		t.Run(tc.name, func(t *testing.T) {
			s := states[i]
			if s.Phase == "" {
				s = f.exited(t, runs[i])
			}
			if s.Reason != tc.reason || !strings.Contains(s.Message, tc.message) || s.Cause != "" || s.Succeeded() {
				f.describe(t)
				t.Errorf("%+v", s)
			}
		})
	}
	run := f.start(t, "look")
	bad := run
	bad.Attempt, bad.Task = 2, run.Task.DeepCopy()
	bad.Task.Spec.Env = append(bad.Task.Spec.Env, corev1.EnvVar{Name: "=bad=", Value: "x"})
	if _, err := f.runs.Start(t.Context(), bad); !errors.Is(err, executor.ErrRefused) || !strings.Contains(err.Error(), "env") {
		t.Errorf("a pod that cannot be: %v", err)
	}
}

// reported reports whether the cluster has said that a run does not start, and why.
func (f *fixture) reported(t *testing.T, run executor.Run, reason string) bool {
	t.Helper()
	if reason == v1alpha1.ReasonMountFailed { // only an Event says that
		events := f.Kubectl(t, "-n", f.namespace, "get", "events", "-o", "name", "--field-selector", "reason=FailedMount")
		return strings.Contains(events, run.JobName())
	}
	s, err := f.runs.State(t.Context(), run.Ref)
	if err != nil {
		t.Fatal(err)
	}
	return s.Waiting.Reason == reason
}

func TestStop(t *testing.T) {
	t.Parallel()
	f := newFixture(t, nil)
	run := f.start(t, "wait")
	f.running(t, run)
	if err := f.runs.Remove(t.Context(), run.UID); !errors.Is(err, executor.ErrRunning) {
		t.Errorf("removed while it runs: %v", err)
	}
	for range 2 { // it may be repeated
		if err := f.runs.Stop(t.Context(), run.Ref); err != nil && !errors.Is(err, executor.ErrNotFound) {
			t.Fatal(err)
		}
	}
	if s, err := f.runs.State(t.Context(), run.Ref); err == nil && s.Cause != executor.CauseStopped {
		t.Errorf("while it is being stopped: %+v", s)
	}
	f.gone(t, run)
	pods, err := f.client.CoreV1().Pods(f.namespace).List(t.Context(), ofRun(run))
	if err != nil {
		t.Fatal(err)
	}
	for i := range pods.Items {
		if p := pods.Items[i].Status.Phase; p == corev1.PodRunning {
			t.Errorf("the run is gone, but its pod runs")
		}
	}
	if list, err := f.runs.List(t.Context()); err != nil || len(list) != 0 {
		t.Errorf("left: %v, %v", list, err)
	}
}

// gone waits until the executor reports the end, after which the Job is removed.
func (f *fixture) gone(t *testing.T, run executor.Run) {
	t.Helper()
	f.told(t, run.Ref)
	kit.Await(t, "the Job goes", func() bool {
		_, err := f.runs.State(t.Context(), run.Ref)
		return errors.Is(err, executor.ErrNotFound)
	})
}

// TestDeletedByOthers: the executor reports a Job that somebody else deletes, and no longer finds it.
func TestDeletedByOthers(t *testing.T) {
	t.Parallel()
	f := newFixture(t, nil)
	run := f.start(t, "wait")
	f.running(t, run)
	f.Kubectl(t, "-n", f.namespace, "delete", "job", run.JobName(), "--wait=false")
	f.gone(t, run)
	_, err := f.runs.State(t.Context(), run.Ref)
	if m, ok := errors.AsType[*executor.MissingError](err); !ok || !strings.Contains(m.What, run.JobName()) {
		t.Errorf("state: %v", err)
	}
}

// TestEvicted: a pod that is evicted through the API.
func TestEvicted(t *testing.T) {
	t.Parallel()
	f := newFixture(t, nil)
	run := f.start(t, "wait")
	pod := f.running(t, run)
	err := f.client.PolicyV1().Evictions(f.namespace).Evict(t.Context(), &policyv1.Eviction{ObjectMeta: metav1.ObjectMeta{Namespace: f.namespace, Name: pod.Name}})
	if err != nil {
		t.Fatal(err)
	}
	s := f.exited(t, run)
	if s.Reason != v1alpha1.ReasonEvicted || s.Succeeded() || !strings.Contains(s.Message, "evict") {
		t.Errorf("%+v", s)
	}
	// An executor that has not seen the pod learns it from the Job.
	f.restart(t)
	if s := f.exited(t, run); s.Reason != v1alpha1.ReasonEvicted || s.Succeeded() {
		t.Errorf("after a restart: %+v", s)
	}
}

// TestAdopted: a new executor knows all runs, and reports those that ended before it started.
func TestAdopted(t *testing.T) {
	t.Parallel()
	f := newFixture(t, nil)
	short := f.start(t, "look")
	f.exited(t, short)
	long := f.start(t, "wait", func(r *executor.Run) { r.Timeout = time.Hour })
	pod := f.running(t, long)
	before, err := f.runs.State(t.Context(), long.Ref)
	if err != nil {
		t.Fatal(err)
	}
	f.restart(t)
	if s := f.exited(t, short); !s.Succeeded() {
		t.Errorf("what had ended: %+v", s)
	}
	after, err := f.runs.State(t.Context(), long.Ref)
	if err != nil || after != before {
		t.Errorf("what runs: %+v, %v; before: %+v", after, err, before)
	}
	if again, err := f.runs.Start(t.Context(), long); err != nil || again.UID != before.UID {
		t.Errorf("started again: %+v, %v", again, err)
	}
	if list, err := f.runs.List(t.Context()); err != nil || len(list) != 2 {
		t.Errorf("known: %v, %v", list, err)
	}
	f.Kubectl(t, "-n", f.namespace, "patch", "job", long.JobName(), "--patch", `{"spec":{"activeDeadlineSeconds":1}}`)
	if s := f.exited(t, long); s.Cause != executor.CauseDeadline {
		t.Errorf("its deadline: %+v", s)
	}
	pods, err := f.client.CoreV1().Pods(f.namespace).List(t.Context(), ofRun(long))
	if err != nil {
		t.Fatal(err)
	}
	for i := range pods.Items {
		if pods.Items[i].UID != pod.UID {
			t.Errorf("a second pod: %s", pods.Items[i].Name)
		}
	}
	for _, r := range []executor.Run{short, long} {
		if err := f.runs.Remove(t.Context(), r.UID); err != nil {
			t.Error(err)
		}
		if _, err := f.client.BatchV1().Jobs(f.namespace).Get(t.Context(), r.JobName(), metav1.GetOptions{}); !apierrors.IsNotFound(err) {
			t.Errorf("%s is not removed: %v", r.Ref, err)
		}
	}
}

// TestParked: while a run is parked its deadline does not count, not even for an executor that starts meanwhile. The cluster's own
// clock cannot be moved, so only the executor's is beyond the deadline.
func TestParked(t *testing.T) {
	t.Parallel()
	const timeout, parkedFor = 3 * time.Second, 5 * time.Second
	var now quickclock.Ahead
	f := newFixture(t, func(o *kubernetes.Options) { o.Clock, o.StartTimeout = &now, 24*time.Hour })
	run := f.start(t, "wait", func(r *executor.Run) { r.Timeout = timeout })
	deadline := func() *int64 {
		job, err := f.client.BatchV1().Jobs(f.namespace).Get(t.Context(), run.JobName(), metav1.GetOptions{})
		if err != nil {
			t.Fatal(err)
		}
		return job.Spec.ActiveDeadlineSeconds
	}
	park := func(parked bool) {
		t.Helper()
		for range 2 { // it may be repeated
			if err := f.runs.Park(t.Context(), run.Ref, parked); err != nil {
				t.Fatal(err)
			}
		}
	}
	park(true) // before it runs: a pod may need all of its time to start
	if d := deadline(); d != nil {
		t.Errorf("parked, with a deadline of %d s", *d)
	}
	f.running(t, run)
	now.By.Store(int64(time.Hour))
	f.restart(t)
	if s, err := f.runs.State(t.Context(), run.Ref); err != nil || s.Phase != executor.Running {
		t.Fatalf("parked beyond its deadline: %+v, %v", s, err)
	}
	if d := deadline(); d != nil {
		t.Errorf("parked, with a deadline of %d s for another executor", *d)
	}
	now.By.Store(int64(parkedFor))
	park(false)
	if d := deadline(); d == nil || *d < int64((timeout+parkedFor).Seconds()) {
		t.Errorf("goes on, with a deadline of %v", d)
	}
	if s := f.exited(t, run); s.Cause != executor.CauseDeadline {
		t.Errorf("%+v", s)
	}
	if err := f.runs.Park(t.Context(), run.Ref, true); err != nil {
		t.Errorf("parked when it is over: %v", err)
	}
	missing := run.Ref
	missing.Attempt = 7
	if err := f.runs.Park(t.Context(), missing, true); !errors.Is(err, executor.ErrNotFound) {
		t.Errorf("parked what was never started: %v", err)
	}
}

// TestNodeDies needs the node for itself. The other tests run in parallel, after it.
func TestNodeDies(t *testing.T) {
	f := newFixture(t, func(o *kubernetes.Options) { o.UnreachableTimeout = time.Second })
	run := f.start(t, "wait")
	stopped := f.start(t, "stubborn")
	pod := f.running(t, run)
	f.running(t, stopped)
	f.StopNode(t)
	defer f.StartNode(t)
	if err := f.runs.Stop(t.Context(), stopped.Ref); err != nil {
		t.Fatal(err)
	}
	s := f.exited(t, run)
	if s.Phase != executor.Lost || s.Reason != v1alpha1.ReasonNodeLost || !strings.Contains(s.Message, pod.Spec.NodeName) {
		f.describe(t)
		t.Errorf("%+v", s)
	}
	if s := f.exited(t, stopped); s.Phase != executor.Lost || s.Cause != executor.CauseStopped {
		t.Errorf("what was stopped: %+v", s)
	}
	for _, r := range []executor.Run{run, stopped} {
		if err := f.runs.Remove(t.Context(), r.UID); err != nil {
			t.Errorf("%s: %v", fmt.Sprint(r.Ref), err)
		}
	}
}
