// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package kubernetes

import (
	"fmt"
	"strings"
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/platform-ai/platform/pkg/apis/core/v1alpha1"
	"github.com/platform-ai/platform/pkg/controller/executor"
	"github.com/platform-ai/platform/pkg/workspace"
)

func noon() time.Time { return time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC) }

func after(d time.Duration) metav1.Time { return metav1.NewTime(noon().Add(d)) }

func testJob(change ...func(*batchv1.Job)) *batchv1.Job {
	j := &batchv1.Job{ObjectMeta: metav1.ObjectMeta{
		Namespace: "n", Name: "t-1", UID: "job-uid", CreationTimestamp: after(0), Annotations: map[string]string{v1alpha1.AnnotationRunID: "run"},
	}}
	for _, c := range change {
		c(j)
	}
	return j
}

func jobCondition(typ batchv1.JobConditionType, reason, message string) func(*batchv1.Job) {
	return func(j *batchv1.Job) {
		j.Status.Conditions = append(j.Status.Conditions, batchv1.JobCondition{Type: typ, Status: corev1.ConditionTrue, Reason: reason, Message: message})
	}
}

func annotated(key, value string) func(*batchv1.Job) {
	return func(j *batchv1.Job) { j.Annotations[key] = value }
}

func deletedJob(j *batchv1.Job) { j.DeletionTimestamp = new(after(time.Minute)) }

func testPod(phase corev1.PodPhase, change ...func(*corev1.Pod)) *corev1.Pod {
	p := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: "n", Name: "t-1-x", CreationTimestamp: after(time.Second)},
		Spec: corev1.PodSpec{NodeName: "node-1", Containers: []corev1.Container{{
			Name: containerName, Resources: corev1.ResourceRequirements{Limits: corev1.ResourceList{corev1.ResourceMemory: resource.MustParse("64Mi")}},
		}}},
		Status: corev1.PodStatus{Phase: phase, StartTime: new(after(2 * time.Second))},
	}
	for _, c := range change {
		c(p)
	}
	return p
}

func container(state corev1.ContainerState) func(*corev1.Pod) {
	return func(p *corev1.Pod) {
		p.Status.ContainerStatuses = []corev1.ContainerStatus{{Name: containerName, Image: "img", State: state, Ready: state.Running != nil}}
	}
}

func ranTo(code int32, reason, message string) func(*corev1.Pod) {
	return container(corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{ExitCode: code, Reason: reason, Message: message, FinishedAt: after(9 * time.Second)}})
}

func runningSince(p *corev1.Pod) {
	container(corev1.ContainerState{Running: &corev1.ContainerStateRunning{StartedAt: after(3 * time.Second)}})(p)
}

func waits(reason, message string) func(*corev1.Pod) {
	return container(corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: reason, Message: message}})
}

func podCondition(typ corev1.PodConditionType, status corev1.ConditionStatus, reason, message string) func(*corev1.Pod) {
	return func(p *corev1.Pod) {
		p.Status.Conditions = append(p.Status.Conditions, corev1.PodCondition{Type: typ, Status: status, Reason: reason, Message: message, LastTransitionTime: after(20 * time.Second)})
	}
}

// prepares has the init container that prepares the repository in a state.
func prepares(state corev1.ContainerState) func(*corev1.Pod) {
	return func(p *corev1.Pod) {
		waits("PodInitializing", "")(p)
		p.Spec.InitContainers = []corev1.Container{{Name: workspace.ContainerName, Resources: corev1.ResourceRequirements{Limits: corev1.ResourceList{corev1.ResourceMemory: resource.MustParse("512Mi")}}}}
		p.Status.InitContainerStatuses = []corev1.ContainerStatus{{Name: workspace.ContainerName, State: state}}
	}
}

func preparingSince(p *corev1.Pod) {
	prepares(corev1.ContainerState{Running: &corev1.ContainerStateRunning{StartedAt: after(3 * time.Second)}})(p)
}

func preparedWith(code int32, reason, message string) func(*corev1.Pod) {
	return prepares(corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{
		ExitCode: code, Reason: reason, Message: message, StartedAt: after(3 * time.Second), FinishedAt: after(time.Hour),
	}})
}

func createdAt(at time.Duration) func(*corev1.Pod) {
	return func(p *corev1.Pod) { p.CreationTimestamp = after(at) }
}

func deletedPod(at time.Duration) func(*corev1.Pod) {
	return func(p *corev1.Pod) { p.DeletionTimestamp = new(after(at)) }
}

// inGrace is deletedPod for a Pod that was given the whole grace period at that time.
func inGrace(at time.Duration) func(*corev1.Pod) {
	return func(p *corev1.Pod) {
		p.DeletionTimestamp, p.DeletionGracePeriodSeconds = new(after(at+graceSeconds*time.Second)), new(int64(graceSeconds))
	}
}

const (
	deadlineText = "Job was active longer than specified deadline"
	evictedText  = "Pod n/t-1-x has condition DisruptionTarget matching FailJob rule at index 0"
	quotaText    = `Error creating: pods "t-1-abcde" is forbidden: exceeded quota: runs, requested: limits.memory=1Gi, used: limits.memory=4Gi, limited: limits.memory=4Gi`
	report       = `{"reason":"WorkerStopped","message":"the worker was stopped","exitCode":1}`
)

// TestAssess: the state of a run for Jobs and Pods in the states in which a cluster leaves them.
func TestAssess(t *testing.T) {
	failed := jobCondition(batchv1.JobFailed, batchv1.JobReasonPodFailurePolicy, "Container worker for pod n/t-1-x failed with exit code 1 matching FailJob rule at index 1")
	deadline := jobCondition(batchv1.JobFailed, batchv1.JobReasonDeadlineExceeded, deadlineText)
	aboutToFail := jobCondition(batchv1.JobFailureTarget, batchv1.JobReasonDeadlineExceeded, deadlineText)
	complete := jobCondition(batchv1.JobComplete, batchv1.JobReasonCompletionsReached, "Reached expected number of succeeded pods")
	evicted := jobCondition(batchv1.JobFailed, batchv1.JobReasonPodFailurePolicy, evictedText)
	givenUp := &verdict{Reason: "ImagePullFailed", Message: "image img: ErrImagePull"}
	outOfReach := &verdict{Reason: "NodeLost", Message: "node node-1 does not answer"}
	// An annotation that others could write to the Job, and the short deadline that only giving up sets.
	forged := annotated(v1alpha1.LabelPrefix+"given-up", `{"reason":"NodeLost","message":"forged"}`)
	atOnce := func(j *batchv1.Job) { j.Spec.ActiveDeadlineSeconds = new(int64(giveUpSeconds)) }
	stopped := annotated(annotationStopped, "2026-01-01T12:00:00Z")
	notReady := podCondition(corev1.PodReady, corev1.ConditionFalse, "", "")
	for _, tc := range []struct {
		name string
		job  *batchv1.Job
		// given is the verdict that the executor remembers; nil after a restart.
		given *verdict
		pod   *corev1.Pod
		now   time.Duration
		want  string // phase, cause, reason, exit code or signal, message
		// again and verdict are those of an assessment of a run that goes on.
		again   time.Duration
		verdict string
		// waiting is what such a run waits for, and refusal what the cluster said of its pod.
		waiting, refusal string
	}{
		{name: "created", job: testJob(), now: time.Second, want: "Running", again: 9 * time.Second},
		{name: "no pod in time", job: testJob(), now: 5 * time.Minute, want: "Running", verdict: "PodNotCreated: no pod of Job t-1 could be created"},
		{name: "pending", job: testJob(), pod: testPod(corev1.PodPending, waits("ContainerCreating", "")), now: time.Minute, want: "Running", again: 4*time.Minute + time.Second, waiting: "ImagePulling: the images of pod t-1-x are being pulled"},
		{name: "starts as usual", job: testJob(), pod: testPod(corev1.PodPending, waits("ContainerCreating", "")), now: 3 * time.Second, want: "Running", again: 8 * time.Second},
		{
			name: "volumes", job: testJob(), pod: testPod(corev1.PodPending, waits("ContainerCreating", ""), podCondition(corev1.PodReadyToStartContainers, corev1.ConditionFalse, "", "")), now: time.Minute,
			want: "Running", again: 4*time.Minute + time.Second, waiting: "Mounting: volumes and network of pod t-1-x are being set up",
		},
		{
			name: "the quota is used up", job: testJob(), refusal: quotaText, now: 24 * time.Hour, want: "Running",
			waiting: "QuotaExceeded: the quota of the namespace leaves no room: exceeded quota: runs, requested: limits.memory=1Gi, used: limits.memory=4Gi, limited: limits.memory=4Gi",
		},
		{name: "a pod after a day without quota", job: testJob(), refusal: quotaText, pod: testPod(corev1.PodPending, waits("ContainerCreating", ""), createdAt(24*time.Hour)), now: 24*time.Hour + time.Second, want: "Running", again: 9 * time.Second},
		{
			name: "no pod, and the cluster says why", job: testJob(), refusal: "Error creating: admission webhook says no", now: time.Minute, want: "Running", again: 4 * time.Minute,
			waiting: "PodNotCreated: no pod of Job t-1 could be created: Error creating: admission webhook says no",
		},
		{
			name: "no node yet", job: testJob(), pod: testPod(corev1.PodPending, podCondition(corev1.PodScheduled, corev1.ConditionFalse, "Unschedulable", "0/1 nodes are available")), now: 3 * time.Second,
			want: "Running", again: 298 * time.Second, waiting: "Unschedulable: no node takes the pod: 0/1 nodes are available",
		},
		{
			name: "never out of pending", job: testJob(), pod: testPod(corev1.PodPending, waits("ContainerCreating", "")), now: 6 * time.Minute, want: "Running",
			verdict: "StartTimedOut: pod t-1-x did not start in time",
		},
		{
			name: "no node", job: testJob(), pod: testPod(corev1.PodPending, podCondition(corev1.PodScheduled, corev1.ConditionFalse, "Unschedulable", "0/1 nodes are available")), now: 6 * time.Minute,
			want: "Running", verdict: "Unschedulable: no node takes the pod: 0/1 nodes are available",
		},
		{name: "image backs off", job: testJob(), pod: testPod(corev1.PodPending, waits("ImagePullBackOff", "Back-off")), now: time.Minute, want: "Running", again: 4*time.Minute + time.Second, waiting: "ImagePullFailed: image img: ImagePullBackOff: Back-off"},
		{
			name: "image never came", job: testJob(), pod: testPod(corev1.PodPending, waits("ImagePullBackOff", "Back-off")), now: 6 * time.Minute, want: "Running",
			verdict: "ImagePullFailed: image img: ImagePullBackOff: Back-off",
		},
		{
			name: "no name of an image", job: testJob(), pod: testPod(corev1.PodPending, waits("InvalidImageName", "bad")), now: time.Second, want: "Running",
			verdict: "ImagePullFailed: image img: InvalidImageName: bad",
		},
		{
			name: "configuration", job: testJob(), pod: testPod(corev1.PodPending, waits("CreateContainerConfigError", `secret "s" not found`)), now: 6 * time.Minute, want: "Running",
			verdict: `ContainerConfigInvalid: container worker: CreateContainerConfigError: secret "s" not found`,
		},
		{name: "runs", job: testJob(), pod: testPod(corev1.PodRunning, runningSince, podCondition(corev1.PodReady, corev1.ConditionTrue, "", "")), now: time.Hour, want: "Running"},
		{name: "node silent", job: testJob(), pod: testPod(corev1.PodRunning, runningSince, notReady), now: time.Minute, want: "Running", again: 20 * time.Second},
		{
			name: "node silent for too long", job: testJob(), pod: testPod(corev1.PodRunning, runningSince, notReady), now: 80 * time.Second, want: "Running",
			verdict: "NodeLost: node node-1 has not answered since 2026-01-01T12:00:20Z",
		},
		{
			name: "given up, pod in its grace period", job: testJob(aboutToFail, atOnce), given: outOfReach, pod: testPod(corev1.PodRunning, runningSince, notReady, deletedPod(95*time.Second)), now: 90 * time.Second,
			want: "Running", again: 5 * time.Second,
		},
		{
			name: "given up", job: testJob(aboutToFail, atOnce), given: outOfReach, pod: testPod(corev1.PodRunning, runningSince, notReady, deletedPod(95*time.Second)), now: 95 * time.Second,
			want: "Lost  NodeLost 0 node node-1 does not answer",
		},
		{
			name: "evicted from a node that does not answer", job: testJob(), pod: testPod(corev1.PodRunning, runningSince, deletedPod(time.Minute)), now: 90 * time.Second,
			want: "Lost  NodeLost 0 node node-1 does not answer: pod t-1-x should have ended at 2026-01-01T12:01:00Z",
		},
		{name: "succeeded", job: testJob(), pod: testPod(corev1.PodSucceeded, ranTo(0, "Completed", `{"reason":"Completed","exitCode":0}`)), want: "Exited   0 "},
		{name: "complete without its pod", job: testJob(complete), want: "Lost   0 the pod of Job t-1 is gone"},
		{name: "failed", job: testJob(), pod: testPod(corev1.PodFailed, ranTo(1, "Error", report)), want: "Exited   1 "},
		{name: "failed without its pod", job: testJob(failed), want: "Lost   0 the pod of Job t-1 is gone; the Job says: PodFailurePolicy: Container worker for pod n/t-1-x failed with exit code 1 matching FailJob rule at index 1"},
		{name: "log instead of a report", job: testJob(failed), pod: testPod(corev1.PodFailed, ranTo(2, "Error", "panic: no\n")), want: "Exited   2 panic: no"},
		{name: "killed", job: testJob(failed), pod: testPod(corev1.PodFailed, ranTo(137, "Error", "")), want: "Exited   killed "},
		{name: "out of memory", job: testJob(failed), pod: testPod(corev1.PodFailed, ranTo(137, "OOMKilled", "")), want: "Exited  OOMKilled killed the run needed more memory than its limit of 64Mi"},
		{name: "its command out of memory", job: testJob(failed), pod: testPod(corev1.PodFailed, ranTo(1, "OOMKilled", report)), want: "Exited  OOMKilled 1 the run needed more memory than its limit of 64Mi"},
		{name: "succeeded, its sandbox remains", job: testJob(), pod: testPod(corev1.PodRunning, ranTo(0, "Completed", `{"reason":"Completed","exitCode":0}`)), want: "Exited   0 "},
		{name: "succeeded and deleted, its sandbox remains", job: testJob(), pod: testPod(corev1.PodRunning, ranTo(0, "Completed", ""), deletedPod(time.Minute)), want: "Exited   0 "},
		{name: "failed, its sandbox remains", job: testJob(), pod: testPod(corev1.PodRunning, ranTo(1, "Error", "")), want: "Running"},
		{name: "a child out of memory, and done", job: testJob(complete), pod: testPod(corev1.PodSucceeded, ranTo(0, "OOMKilled", "")), want: "Exited   0 "},
		{name: "does not start", job: testJob(failed), pod: testPod(corev1.PodFailed, ranTo(128, "StartError", "no such file")), want: "Exited  StartFailed 128 the container could not be started: no such file"},
		{
			name: "evicted by kubelet", job: testJob(), pod: testPod(corev1.PodFailed, ranTo(137, "Error", ""), func(p *corev1.Pod) {
				p.Status.Reason, p.Status.Message = "Evicted", "The node was low on resource: memory."
			}), want: "Exited  Evicted killed the pod was evicted: The node was low on resource: memory.",
		},
		{
			name: "being evicted", job: testJob(), pod: testPod(corev1.PodFailed, ranTo(1, "Error", report), deletedPod(time.Minute), podCondition(corev1.DisruptionTarget, corev1.ConditionTrue, "EvictionByEvictionAPI", "Eviction API: evicting")),
			now: 50 * time.Second, want: "Running", again: 40 * time.Second,
		},
		{
			name: "evicted", job: testJob(evicted), pod: testPod(corev1.PodFailed, ranTo(1, "Error", report), deletedPod(time.Minute), podCondition(corev1.DisruptionTarget, corev1.ConditionTrue, "EvictionByEvictionAPI", "Eviction API: evicting")),
			want: "Exited  Evicted 1 node node-1: Eviction API: evicting",
		},
		{name: "evicted, pod gone", job: testJob(evicted), want: "Lost  Evicted 0 the pod of Job t-1 is gone; the Job says: PodFailurePolicy: " + evictedText},
		{
			name: "preempted", job: testJob(evicted), pod: testPod(corev1.PodFailed, ranTo(143, "Error", ""), podCondition(corev1.DisruptionTarget, corev1.ConditionTrue, corev1.PodReasonPreemptionByScheduler, "default-scheduler: preempting")),
			want: "Exited  Preempted terminated node node-1: default-scheduler: preempting",
		},
		{
			name: "node removed", job: testJob(evicted), pod: testPod(corev1.PodFailed, runningSince, podCondition(corev1.DisruptionTarget, corev1.ConditionTrue, "DeletionByPodGC", "PodGC: node no longer exists")),
			want: "Exited  NodeLost -1 node node-1: PodGC: node no longer exists",
		},
		{name: "container forgotten", job: testJob(failed), pod: testPod(corev1.PodFailed, ranTo(137, "ContainerStatusUnknown", "The container could not be located")), want: "Lost   killed node node-1 does not know how the container of pod t-1-x ended: The container could not be located"},
		{name: "node came back", job: testJob(failed), pod: testPod(corev1.PodFailed, ranTo(255, "Unknown", "")), want: "Lost   255 node node-1 does not know how the container of pod t-1-x ended: it was gone when the node came back"},
		{name: "deadline passes", job: testJob(aboutToFail), pod: testPod(corev1.PodRunning, runningSince, deletedPod(time.Minute)), now: time.Minute, want: "Running DeadlineExceeded", again: overdueAfter},
		{
			name: "deadline passes, the result is being delivered", job: testJob(aboutToFail), pod: testPod(corev1.PodRunning, runningSince, inGrace(time.Minute)), now: 4 * time.Minute,
			want: "Running DeadlineExceeded", again: graceSeconds*time.Second - 3*time.Minute + overdueAfter,
		},
		{
			name: "done after its deadline", job: testJob(aboutToFail), pod: testPod(corev1.PodSucceeded, ranTo(0, "Completed", `{"reason":"Completed","exitCode":0}`), inGrace(time.Minute)), now: 4 * time.Minute,
			want: "Exited DeadlineExceeded  0 ",
		},
		{
			name: "a silent node gets no time for a delivery", job: testJob(aboutToFail), pod: testPod(corev1.PodRunning, runningSince, notReady, inGrace(time.Minute)), now: 75 * time.Second,
			want: "Lost DeadlineExceeded NodeLost 0 node node-1 does not answer: pod t-1-x should have ended at 2026-01-01T12:01:15Z",
		},
		{
			name: "evicted, and nothing is left to deliver", job: testJob(), pod: testPod(corev1.PodFailed, ranTo(1, "Error", report), inGrace(time.Minute)), now: time.Minute + 40*time.Second,
			want: "Running", again: 5 * time.Second,
		},
		{name: "deadline", job: testJob(deadline), pod: testPod(corev1.PodFailed, ranTo(1, "Error", report), deletedPod(time.Minute)), want: "Exited DeadlineExceeded  1 "},
		{name: "deadline, pod gone", job: testJob(deadline), want: "Exited DeadlineExceeded  -1 "},
		{name: "done at its deadline", job: testJob(deadline), pod: testPod(corev1.PodSucceeded, ranTo(0, "Completed", "")), want: "Exited DeadlineExceeded  0 "},
		{name: "image, at its end", job: testJob(deadline, atOnce), given: givenUp, want: "Exited  ImagePullFailed -1 image img: ErrImagePull"},
		{name: "image, pod of it", job: testJob(deadline, atOnce), given: givenUp, pod: testPod(corev1.PodFailed, ranTo(137, "ContainerStatusUnknown", "gone")), want: "Exited  ImagePullFailed killed image img: ErrImagePull"},
		{name: "given up, after a restart", job: testJob(deadline, atOnce), want: "Exited DeadlineExceeded  -1 "},
		{
			name: "given up, pod in its grace period, after a restart", job: testJob(aboutToFail, atOnce), pod: testPod(corev1.PodRunning, runningSince, notReady, deletedPod(95*time.Second)), now: 90 * time.Second,
			want: "Running", again: 5 * time.Second,
		},
		{
			name: "given up because of its node, after a restart", job: testJob(aboutToFail, atOnce), pod: testPod(corev1.PodRunning, runningSince, notReady, deletedPod(95*time.Second)), now: 95 * time.Second,
			want: "Lost  NodeLost 0 node node-1 has not answered since 2026-01-01T12:00:20Z",
		},
		{
			name: "deadline of its own, on a node that does not answer", job: testJob(aboutToFail), pod: testPod(corev1.PodRunning, runningSince, notReady, deletedPod(95*time.Second)), now: 90 * time.Second,
			want: "Running DeadlineExceeded", again: 5 * time.Second,
		},
		{name: "forged verdict, runs", job: testJob(forged), pod: testPod(corev1.PodRunning, runningSince, podCondition(corev1.PodReady, corev1.ConditionTrue, "", "")), now: time.Hour, want: "Running"},
		{name: "forged verdict, no pod in time", job: testJob(forged), now: 5 * time.Minute, want: "Running", verdict: "PodNotCreated: no pod of Job t-1 could be created"},
		{name: "forged verdict, failed", job: testJob(failed, forged), pod: testPod(corev1.PodFailed, ranTo(1, "Error", report)), want: "Exited   1 "},
		{name: "forged verdict, deadline", job: testJob(deadline, forged), pod: testPod(corev1.PodFailed, ranTo(1, "Error", report), deletedPod(time.Minute)), want: "Exited DeadlineExceeded  1 "},
		{name: "is being stopped", job: testJob(stopped, deletedJob), pod: testPod(corev1.PodRunning, runningSince, deletedPod(time.Minute)), want: "Running Stopped", again: time.Minute + overdueAfter},
		{name: "stopped", job: testJob(stopped, deletedJob), pod: testPod(corev1.PodFailed, ranTo(1, "Error", report), deletedPod(time.Minute)), want: "Exited Stopped  1 "},
		{name: "stopped, pod gone", job: testJob(stopped, deletedJob), want: "Lost Stopped  0 the pod of Job t-1 is gone"},
		{
			name: "init container", job: testJob(failed), pod: testPod(corev1.PodFailed, waits("PodInitializing", ""), func(p *corev1.Pod) {
				p.Status.InitContainerStatuses = []corev1.ContainerStatus{{Name: "install-worker", State: corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{ExitCode: 1, Message: "no space"}}}}
			}), want: "Exited  StartFailed -1 init container install-worker ended with exit code 1: no space",
		},
		{name: "fetches its repository", job: testJob(), pod: testPod(corev1.PodPending, preparingSince), now: 10 * time.Minute, want: "Running", again: prepareTime - 10*time.Minute + 3*time.Second},
		{
			name: "fetches its repository for too long", job: testJob(), pod: testPod(corev1.PodPending, preparingSince), now: 3 * time.Hour, want: "Running",
			verdict: "StartTimedOut: the repository of pod t-1-x was not fetched within 1h0m0s",
		},
		{
			name: "pulls its image after an hour of fetching", job: testJob(), pod: testPod(corev1.PodPending, preparedWith(0, "Completed", "")), now: time.Hour + time.Minute,
			want: "Running", again: 4 * time.Minute, waiting: "ImagePulling: the images of pod t-1-x are being pulled",
		},
		{
			name: "repository", job: testJob(failed), pod: testPod(corev1.PodFailed, preparedWith(1, "Error", `{"failure":{"reason":"RepositoryNotRead","message":"no branch x"}}`)),
			want: "Exited   1  / RepositoryNotRead: no branch x",
		},
		{
			name: "repository, with a secret", job: testJob(failed), pod: testPod(corev1.PodFailed, preparedWith(1, "Error", `{"failure":{"reason":"RepositoryUnreachable","message":"password: hunter2hunter2","temporary":true}}`)),
			want: "Exited   1  / RepositoryUnreachable: password: [REDACTED]",
		},
		{
			name: "repository, reason of somebody else", job: testJob(failed), pod: testPod(corev1.PodFailed, preparedWith(1, "Error", `{"failure":{"reason":"BudgetExhausted","message":"x"}}`)),
			want: `Exited  StartFailed -1 init container prepare-workspace ended with exit code 1: {"failure":{"reason":"BudgetExhausted","message":"x"}}`,
		},
		{
			name: "repository, report of a worker", job: testJob(failed), pod: testPod(corev1.PodFailed, preparedWith(1, "Error", report)),
			want: "Exited  StartFailed -1 init container prepare-workspace ended with exit code 1: " + report,
		},
		{
			name: "repository, not JSON and too long", job: testJob(failed), pod: testPod(corev1.PodFailed, preparedWith(2, "Error", `{"failure":{"reason":`+strings.Repeat("x", 4000)+"\xff\npanic: end")),
			want: "Exited  StartFailed -1 init container prepare-workspace ended with exit code 2: " + strings.Repeat("x", maxText-len("?\npanic: end")) + "?\npanic: end",
		},
		{
			name: "repository, a failure of another container", job: testJob(failed), pod: testPod(corev1.PodFailed, preparedWith(1, "Error", `{"failure":{"reason":"RepositoryNotRead","message":"x"}}`), func(p *corev1.Pod) {
				p.Status.InitContainerStatuses[0].Name = "install-worker"
			}), want: `Exited  StartFailed -1 init container install-worker ended with exit code 1: {"failure":{"reason":"RepositoryNotRead","message":"x"}}`,
		},
		{
			name: "repository, out of memory", job: testJob(failed), pod: testPod(corev1.PodFailed, preparedWith(137, "OOMKilled", "")),
			want: "Exited  OOMKilled -1 fetching the repository needed more memory than its limit of 512Mi, which is that of the run or 512Mi if that is more",
		},
		{name: "stopped while it fetches", job: testJob(stopped, deletedJob), pod: testPod(corev1.PodFailed, preparedWith(1, "Error", `{"failure":{"reason":"InternalError","message":"x"}}`), deletedPod(time.Minute)), want: "Exited Stopped  -1 "},
		{name: "deadline while it fetches", job: testJob(deadline), pod: testPod(corev1.PodFailed, preparedWith(1, "Error", ""), deletedPod(time.Minute)), want: "Exited DeadlineExceeded  -1 "},
		{
			name: "refused by kubelet", job: testJob(failed), pod: testPod(corev1.PodFailed, func(p *corev1.Pod) { p.Status.Reason, p.Status.Message = "OutOfmemory", "Pod was rejected" }),
			want: "Exited  StartFailed -1 pod t-1-x failed before its worker ran: OutOfmemory: Pod was rejected",
		},
	} {
		t.Run(tc.name, func(t *testing.T) {
			a := assess(tc.job, tc.pod, tc.given, tc.refusal, noon().Add(tc.now), patience{start: DefaultStartTimeout, unreachable: DefaultUnreachableTimeout})
			s := a.state
			if s.ID != "run" || s.UID != "job-uid" {
				t.Errorf("identity %s, %s", s.ID, s.UID)
			}
			got := strings.TrimSpace(string(s.Phase) + " " + string(s.Cause))
			if s.Phase != executor.Running {
				how := s.Signal
				if how == "" {
					how = fmt.Sprint(s.ExitCode)
				}
				got = fmt.Sprintf("%s %s %s %s %s", s.Phase, s.Cause, s.Reason, how, s.Message)
				if s.Termination != nil && terminated(tc.pod) == nil {
					got += fmt.Sprintf(" / %s: %s", s.Termination.Reason, s.Termination.Message)
				}
				if s.FinishedAt.IsZero() {
					t.Error("not finished at any time")
				}
			}
			if got != tc.want {
				t.Errorf("got  %q\nwant %q", got, tc.want)
			}
			verdict := ""
			if a.verdict != nil {
				verdict = a.verdict.Reason + ": " + a.verdict.Message
			}
			waiting := ""
			if s.Waiting.Reason != "" && a.verdict == nil {
				waiting = s.Waiting.Reason + ": " + s.Waiting.Message
			}
			if waiting != tc.waiting {
				t.Errorf("waits for %q, want %q", waiting, tc.waiting)
			}
			never := s.Phase != executor.Running && (strings.HasPrefix(tc.name, "image, ") || tc.name == "init container" || tc.name == "repository, a failure of another container" || tc.name == "deadline, pod gone" || tc.name == "given up, after a restart")
			if s.NeverBegan != never {
				t.Errorf("never began: %v", s.NeverBegan)
			}
			if a.again != tc.again || verdict != tc.verdict {
				t.Errorf("again %s, verdict %q", a.again, verdict)
			}
			if strings.Contains(tc.name, "succe") || strings.Contains(tc.name, "done") {
				if !s.Succeeded() {
					t.Error("not a success")
				}
			} else if s.Succeeded() {
				t.Error("a success")
			}
		})
	}
}

// TestParking: parking moves the deadline of a run.
func TestParking(t *testing.T) {
	limited := annotated(annotationTimeout, "10s")
	parkedAt := annotated(annotationParkedAt, "2026-01-01T11:59:00Z")
	for _, tc := range []struct {
		name   string
		job    *batchv1.Job
		parked bool
		want   string
	}{
		{"park", testJob(limited), true, `map[platform.ai/parked-at:2026-01-01T12:00:00Z] map[activeDeadlineSeconds:<nil>]`},
		{"is parked", testJob(limited, parkedAt), true, ``},
		{"goes on", testJob(limited, parkedAt), false, `map[platform.ai/parked:1m0s platform.ai/parked-at:<nil>] map[activeDeadlineSeconds:70]`},
		{"goes on again", testJob(limited, parkedAt, annotated(annotationParked, "5s")), false, `map[platform.ai/parked:1m5s platform.ai/parked-at:<nil>] map[activeDeadlineSeconds:75]`},
		{"goes on after it waited", testJob(limited, parkedAt, annotated(annotationWaited, "4s")), false, `map[platform.ai/parked:1m0s platform.ai/parked-at:<nil>] map[activeDeadlineSeconds:74]`},
		{"goes on without a limit", testJob(parkedAt), false, `map[platform.ai/parked:1m0s platform.ai/parked-at:<nil>] <nil>`},
		{"is not parked", testJob(limited), false, ``},
		{"is over", testJob(limited, jobCondition(batchv1.JobComplete, "", "")), true, ``},
		{"is being stopped", testJob(limited, deletedJob), true, ``},
	} {
		got := ""
		if p := parking(tc.job, tc.parked, noon()); p != nil {
			got = fmt.Sprint(p["metadata"].(map[string]any)["annotations"], " ", p["spec"])
		}
		if got != tc.want {
			t.Errorf("%s: %s", tc.name, got)
		}
	}
}

// TestBeginning: the time of a run counts from when its worker began, once.
func TestBeginning(t *testing.T) {
	limited, waited := annotated(annotationTimeout, "10s"), annotated(annotationWaited, "3s")
	runs := testPod(corev1.PodRunning, runningSince)
	late := func(j *batchv1.Job) { j.Status.StartTime = new(after(time.Second)) }
	for _, tc := range []struct {
		name string
		job  *batchv1.Job
		pod  *corev1.Pod
		want string
	}{
		{"begins", testJob(limited), runs, `map[platform.ai/waited:3s] map[activeDeadlineSeconds:13]`},
		{"the cluster counts from later", testJob(limited, late), runs, `map[platform.ai/waited:2s] map[activeDeadlineSeconds:12]`},
		{"no limit", testJob(), runs, ``},
		{"fetches its repository", testJob(limited), testPod(corev1.PodPending, preparingSince), `map[platform.ai/waited:3s] map[activeDeadlineSeconds:13]`},
		{"has fetched its repository", testJob(limited), testPod(corev1.PodPending, preparedWith(0, "Completed", "")), `map[platform.ai/waited:3s] map[activeDeadlineSeconds:13]`},
		{"waits", testJob(limited), testPod(corev1.PodPending, waits("ContainerCreating", "")), ``},
		{"has no pod", testJob(limited), nil, ``},
		{"counts already", testJob(limited, waited), runs, ``},
		{"counts since its creation", testJob(limited, func(j *batchv1.Job) { j.Spec.ActiveDeadlineSeconds = new(int64(10)) }), runs, ``},
		{"begins and is parked", testJob(limited, annotated(annotationParkedAt, "2026-01-01T12:00:03Z")), runs, `map[platform.ai/waited:3s] <nil>`},
		{"is over", testJob(limited, jobCondition(batchv1.JobComplete, "", "")), runs, ``},
		{"is being stopped", testJob(limited, deletedJob), runs, ``},
	} {
		got := ""
		if p := beginning(tc.job, tc.pod); p != nil {
			got = fmt.Sprint(p["metadata"].(map[string]any)["annotations"], " ", p["spec"])
		}
		if got != tc.want {
			t.Errorf("%s: %s", tc.name, got)
		}
	}
}

// TestGivenUpTwice: a run that is given up again, before the executor sees that it was, keeps the reason.
func TestGivenUpTwice(t *testing.T) {
	e := &Executor{verdicts: map[types.UID]*verdict{}}
	first, again := &verdict{Reason: v1alpha1.ReasonImagePullFailed}, &verdict{Reason: v1alpha1.ReasonImagePullFailed}
	job := &batchv1.Job{ObjectMeta: metav1.ObjectMeta{UID: "a"}}
	e.remember(job.UID, first)
	e.remember(job.UID, again)
	if e.takeBack(job.UID, again); e.verdictOn(job) != first {
		t.Errorf("after a conflict of the second: %v", e.verdictOn(job))
	}
	if e.takeBack(job.UID, first); e.verdictOn(job) != nil {
		t.Errorf("after a conflict of the first: %v", e.verdictOn(job))
	}
}
