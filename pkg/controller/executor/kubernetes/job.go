// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package kubernetes

import (
	"maps"
	"strconv"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/platform-ai/platform/pkg/apis/core/v1alpha1"
	"github.com/platform-ai/platform/pkg/controller/executor"
)

// labelTaskUID is the label with the UID of the task. It identifies the task, whereas the label with the task's
// name may be shortened.
const labelTaskUID = v1alpha1.LabelPrefix + "task-uid"

// Annotations of a Job.
const (
	annotationTaskName = v1alpha1.LabelPrefix + "task-name"
	annotationAttempt  = v1alpha1.LabelPrefix + "attempt"
	// annotationTimeout is the run's own timeout, as a Go duration. Once the worker begins, the
	// Job's activeDeadlineSeconds is the sum of this, the time that the run waited before, and the
	// time that it was parked since.
	annotationTimeout = v1alpha1.LabelPrefix + "timeout"
	// annotationParked is how long the run was parked, as a Go duration, and
	// annotationParkedAt since when it is, in RFC 3339.
	annotationParked = v1alpha1.LabelPrefix + "parked"
	// annotationWaited is how long the run waited until its worker began, as a Go duration.
	annotationWaited   = v1alpha1.LabelPrefix + "waited"
	annotationParkedAt = v1alpha1.LabelPrefix + "parked-at"
	// annotationStopped is when Stop was called, in RFC 3339.
	annotationStopped = v1alpha1.LabelPrefix + "stopped-at"
)

// containerName is the name of the worker's container.
const containerName = "worker"

// job makes the Job of a run.
func (e *Executor) job(run executor.Run) *batchv1.Job {
	labels := map[string]string{
		v1alpha1.LabelTask:             v1alpha1.LabelValue(run.Name),
		v1alpha1.LabelTaskType:         string(run.Task.Spec.Type),
		labelTaskUID:                   string(run.UID),
		"app.kubernetes.io/name":       "platform-worker",
		"app.kubernetes.io/component":  "worker",
		"app.kubernetes.io/part-of":    "platform",
		"app.kubernetes.io/managed-by": "platform-controller",
	}
	annotations := map[string]string{
		annotationTaskName:       run.Name,
		annotationAttempt:        strconv.Itoa(int(run.Attempt)),
		v1alpha1.AnnotationRunID: run.ID,
	}
	job := &batchv1.Job{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: run.Namespace, Name: run.JobName(), Labels: labels, Annotations: maps.Clone(annotations),
			// Without blockOwnerDeletion: a Task has a finalizer of its own that waits
			// for its runs, and setting it needs update on tasks/finalizers.
			OwnerReferences: []metav1.OwnerReference{{
				APIVersion: v1alpha1.SchemeGroupVersion.String(), Kind: "Task", Name: run.Name, UID: run.UID, Controller: new(true),
			}},
		},
		Spec: batchv1.JobSpec{
			Parallelism: new(int32(1)), Completions: new(int32(1)), BackoffLimit: new(int32(0)),
			PodReplacementPolicy: new(batchv1.Failed),
			PodFailurePolicy:     failurePolicy(),
			Template: corev1.PodTemplateSpec{
				ObjectMeta: metav1.ObjectMeta{Labels: labels, Annotations: annotations},
				Spec:       e.pod(run),
			},
		},
	}
	if run.Timeout > 0 {
		job.Annotations[annotationTimeout] = run.Timeout.String()
	}
	return job
}

// failurePolicy fails the Job when its Pod fails. The Job's conditions then describe the Pod's
// failure even after the Pod is gone.
func failurePolicy() *batchv1.PodFailurePolicy {
	return &batchv1.PodFailurePolicy{Rules: []batchv1.PodFailurePolicyRule{
		{
			Action:          batchv1.PodFailurePolicyActionFailJob,
			OnPodConditions: []batchv1.PodFailurePolicyOnPodConditionsPattern{{Type: corev1.DisruptionTarget, Status: corev1.ConditionTrue}},
		},
		{
			Action:      batchv1.PodFailurePolicyActionFailJob,
			OnExitCodes: &batchv1.PodFailurePolicyOnExitCodesRequirement{Operator: batchv1.PodFailurePolicyOnExitCodesOpNotIn, Values: []int32{0}},
		},
	}}
}

// seconds rounds up, so that a run gets all of its time.
func seconds(d time.Duration) *int64 {
	return new(max(1, int64((d+time.Second-1)/time.Second)))
}

// isJobOf reports whether the Job is that of the attempt, and not of an earlier task of the same name.
func isJobOf(job *batchv1.Job, ref executor.Ref) bool {
	found, ok := refOf(job)
	return ok && found == ref
}

// refOf returns the attempt that a Job runs; false for a Job that runs none.
func refOf(job *batchv1.Job) (executor.Ref, bool) {
	attempt, err := strconv.ParseInt(job.Annotations[annotationAttempt], 10, 32)
	ref := executor.Ref{
		Namespace: job.Namespace, Name: job.Annotations[annotationTaskName], UID: types.UID(job.Labels[labelTaskUID]), Attempt: int32(attempt),
	}
	return ref, err == nil && ref.Name != "" && ref.UID != "" && attempt > 0
}

func runID(job *batchv1.Job) string { return job.Annotations[v1alpha1.AnnotationRunID] }
