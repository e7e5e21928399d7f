// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package aggregated

import (
	"testing"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/platform-ai/platform/pkg/apis/core/v1alpha1"
	"github.com/platform-ai/platform/pkg/controller/executor"
	"github.com/platform-ai/platform/pkg/controller/executor/kubernetes"
)

// imitate makes a Pod with the metadata of the Job's own Pod, and its spec except for what change alters.
func (w *workload) imitate(t *testing.T, genuine *corev1.Pod, name string, change func(*corev1.PodSpec)) *corev1.Pod {
	t.Helper()
	p := &corev1.Pod{ObjectMeta: *genuine.ObjectMeta.DeepCopy(), Spec: *genuine.Spec.DeepCopy()}
	p.Name, p.GenerateName, p.UID, p.ResourceVersion = name, "", "", ""
	// The Job controller deletes surplus Pods; these stay nevertheless.
	p.Finalizers, p.Spec.NodeName = []string{"example.test/stays"}, "nowhere"
	change(&p.Spec)
	p, err := w.kube.CoreV1().Pods(w.namespace).Create(t.Context(), p, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		s := w.c.Kubectl(t, "-n", w.namespace, "patch", "pod", name, "--type=merge", "-p", `{"metadata": {"finalizers": null}}`)
		t.Log(s)
	})
	return p
}

// place marks a Pod as running on a node, as the scheduler and the kubelet do. The Job controller then deletes other Pods
// first when there are more than it wants.
func (w *workload) place(t *testing.T, p *corev1.Pod) {
	t.Helper()
	pods := w.kube.CoreV1().Pods(w.namespace)
	b := &corev1.Binding{ObjectMeta: metav1.ObjectMeta{Name: p.Name}, Target: corev1.ObjectReference{Kind: "Node", Name: "nowhere"}}
	if err := pods.Bind(t.Context(), b, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	patch := []byte(`{"status": {"phase": "Running"}}`)
	if _, err := pods.Patch(t.Context(), p.Name, types.MergePatchType, patch, metav1.PatchOptions{}, "status"); err != nil {
		t.Fatal(err)
	}
}

// begin has an executor start the first attempt of a task.
func (w *workload) begin(t *testing.T, o *v1alpha1.Task) (*kubernetes.Executor, executor.Run, executor.State) {
	t.Helper()
	runs, err := kubernetes.New(kubernetes.Options{Client: w.kube, Namespaces: []string{w.namespace}, WorkerImage: "none"})
	if err != nil {
		t.Fatal(err)
	}
	run := executor.Run{Ref: executor.Ref{Namespace: o.Namespace, Name: o.Name, UID: o.UID, Attempt: 1}, Task: o, ID: runID}
	state, err := runs.Start(t.Context(), run)
	if err != nil {
		t.Fatal(err)
	}
	return runs, run, state
}

// A Pod with the worker's account and the Job's labels and owner reference is not a worker unless the controller accepted
// it. The executor accepts the first Pod that the Job's template makes.
func TestForgedPods(t *testing.T) {
	s := Start(t)
	w := newWorkload(t, s, "forgery")
	o := w.task(t, "t", "")
	runs, run, state := w.begin(t, o)
	if again, err := runs.Start(t.Context(), run); err != nil || again.UID != state.UID {
		t.Fatalf("a repeated start gave %v, %v", again, err)
	}
	genuine := w.pod(t, "t-1")
	w.place(t, genuine)
	forged := w.imitate(t, genuine, "z-forged", func(s *corev1.PodSpec) {
		s.Containers[0].Command = []string{"sh", "-c", "trap '' TERM; sleep 3600"}
		s.TerminationGracePeriodSeconds = new(int64(3600))
	})
	second := w.imitate(t, genuine, "z-second", func(*corev1.PodSpec) {})
	if state, err := runs.State(t.Context(), run.Ref); err != nil || state.PodUID != genuine.UID {
		t.Fatalf("the executor accepts %q, %v; want %s", state.PodName, err, genuine.Name)
	}
	w.publish(t, o, v1alpha1.TaskRunning, "t-1", state.UID)
	for way, via := range s.ways() {
		s.send(t, via(w.worker(t, forged)), "POST", w.events("t"), message).Want(t, 403, "containers[worker] differ from the Job's template")
		r := s.send(t, via(w.worker(t, genuine)), "POST", w.events("t"), message).Want(t, 503, "has not accepted a Pod")
		if r.Header.Get("Retry-After") != "1" {
			t.Errorf("%s: %v", way, r.Header)
		}
	}
	w.publish(t, o, v1alpha1.TaskRunning, "t-1", state.UID, genuine)
	for way, via := range s.ways() {
		t.Run(way, func(t *testing.T) {
			s.send(t, via(w.worker(t, genuine)), "POST", w.events("t"), message).Want(t, 201, "")
			s.send(t, via(w.worker(t, genuine)), "POST", w.path("tasks/t/result"), "done").Want(t, 204, "")
			for p, why := range map[*corev1.Pod]string{forged: "differ from the Job's template", second: "is not the one that the controller accepted"} {
				s.send(t, via(w.worker(t, p)), "POST", w.events("t"), `{"type": "WorkerCompleted"}`).Want(t, 403, why)
				s.send(t, via(w.worker(t, p)), "POST", w.path("tasks/t/result"), "forged").Want(t, 403, why)
			}
		})
	}
	// The controller recorded the Pod as it was; with another image the Pod runs another program.
	patch := []byte(`{"spec": {"containers": [{"name": "worker", "image": "other"}]}}`)
	if _, err := w.kube.CoreV1().Pods(w.namespace).Patch(t.Context(), genuine.Name, types.StrategicMergePatchType, patch, metav1.PatchOptions{}); err != nil {
		t.Fatal(err)
	}
	changed, err := runs.State(t.Context(), run.Ref)
	if err != nil || changed.PodUID == genuine.UID {
		t.Errorf("a Pod whose image was changed is still accepted: %v, %v", changed.PodName, err)
	}
}

// A Job that somebody else made under the name and run id of a run is not taken for it.
func TestForgedJob(t *testing.T) {
	s := Start(t)
	w := newWorkload(t, s, "forgedjob")
	o := w.task(t, "t", "")
	runs, run, state := w.begin(t, o)
	jobs := w.kube.BatchV1().Jobs(w.namespace)
	made, err := jobs.Get(t.Context(), "t-1", metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	s.c.Kubectl(t, "-n", w.namespace, "delete", "job", "t-1", "--cascade=orphan", "--wait")
	forged := &batchv1.Job{ObjectMeta: metav1.ObjectMeta{Name: "t-1", Labels: made.Labels, Annotations: made.Annotations, OwnerReferences: made.OwnerReferences}, Spec: made.Spec}
	forged.Spec.Selector, forged.Spec.Template.Labels = nil, nil
	forged.Spec.Template.Spec.Containers[0].Command = []string{"true"}
	if _, err := jobs.Create(t.Context(), forged, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	if got, err := runs.Start(t.Context(), run); err == nil || got.UID == state.UID {
		t.Errorf("the start took a Job of somebody else for its own: %v", got)
	}
}

// Whoever may change a Job can write annotations to it. None of them decides how its run ended.
func TestForgedVerdict(t *testing.T) {
	s := Start(t)
	w := newWorkload(t, s, "verdict")
	runs, run, state := w.begin(t, w.task(t, "t", ""))
	forged := []byte(`{"metadata": {"annotations": {"platform.ai/given-up": "{\"reason\": \"NodeLost\", \"message\": \"forged\"}"}}}`)
	if _, err := w.kube.BatchV1().Jobs(w.namespace).Patch(t.Context(), run.JobName(), types.MergePatchType, forged, metav1.PatchOptions{}); err != nil {
		t.Fatal(err)
	}
	got, err := runs.State(t.Context(), run.Ref)
	if err != nil || got.UID != state.UID || got.Phase != executor.Running || got.Reason != "" || got.NeverBegan {
		t.Errorf("the run is %+v, %v; want it to go on", got, err)
	}
}
