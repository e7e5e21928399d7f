// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package kubernetes

import (
	"context"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/util/retry"

	"github.com/platform-ai/platform/pkg/controller/executor"
)

// Park removes the Job's deadline, or restores it, later by the time that the run was parked.
func (e *Executor) Park(ctx context.Context, ref executor.Ref, parked bool) error {
	return retry.RetryOnConflict(retry.DefaultBackoff, func() error {
		job, err := e.get(ctx, ref)
		if err != nil {
			return err
		}
		change := parking(job, parked, e.opts.Clock.Now())
		if change == nil {
			return nil
		}
		return gone(e.patch(ctx, job, change))
	})
}

// parking returns the patch that parks a Job or ends its parking; nil if there is nothing to change.
func parking(job *batchv1.Job, parked bool, now time.Time) map[string]any {
	since, isParked := job.Annotations[annotationParkedAt]
	if parked == isParked || job.DeletionTimestamp != nil || failure(job) != nil || condition(job, batchv1.JobComplete) != nil {
		return nil
	}
	metadata := map[string]any{"uid": job.UID, "resourceVersion": job.ResourceVersion}
	if parked {
		metadata["annotations"] = map[string]any{annotationParkedAt: now.UTC().Format(time.RFC3339Nano)}
		return map[string]any{"metadata": metadata, "spec": map[string]any{"activeDeadlineSeconds": nil}}
	}
	total := duration(job, annotationParked)
	if at, err := time.Parse(time.RFC3339Nano, since); err == nil {
		total += max(0, now.Sub(at)) // the clocks of two controllers may differ
	}
	metadata["annotations"] = map[string]any{annotationParkedAt: nil, annotationParked: total.String()}
	change := map[string]any{"metadata": metadata}
	if timeout := duration(job, annotationTimeout); timeout > 0 {
		change["spec"] = map[string]any{"activeDeadlineSeconds": *seconds(timeout + duration(job, annotationWaited) + total)}
	}
	return change
}

// beginning returns the patch that starts the clock of a run when its worker, or the preparation of its repository, has begun; nil if
// there is nothing to change.
func beginning(job *batchv1.Job, pod *corev1.Pod) map[string]any {
	timeout := duration(job, annotationTimeout)
	_, counts := job.Annotations[annotationWaited]
	at := beganAt(pod)
	if timeout == 0 || counts || at.IsZero() || job.Spec.ActiveDeadlineSeconds != nil || job.DeletionTimestamp != nil ||
		failure(job) != nil || condition(job, batchv1.JobComplete) != nil {
		return nil
	}
	since := job.CreationTimestamp.Time
	if job.Status.StartTime != nil { // from which the cluster counts
		since = job.Status.StartTime.Time
	}
	waited := max(0, at.Sub(since))
	change := map[string]any{"metadata": map[string]any{
		"uid": job.UID, "resourceVersion": job.ResourceVersion, "annotations": map[string]any{annotationWaited: waited.String()},
	}}
	if _, parked := job.Annotations[annotationParkedAt]; !parked {
		change["spec"] = map[string]any{"activeDeadlineSeconds": *seconds(timeout + waited + duration(job, annotationParked))}
	}
	return change
}

// beganAt returns when the worker's container was started, or before it the one that prepares the repository; zero if neither was,
// or the worker is over.
func beganAt(pod *corev1.Pod) time.Time {
	if pod == nil || terminated(pod) != nil {
		return time.Time{}
	}
	if from, _ := preparedFrom(pod); !from.IsZero() {
		return from
	}
	c := workerStatus(pod)
	if c == nil || c.State.Running == nil {
		return time.Time{}
	}
	return c.State.Running.StartedAt.Time
}

// duration parses an annotation; 0 if it is not a duration.
func duration(job *batchv1.Job, annotation string) time.Duration {
	d, err := time.ParseDuration(job.Annotations[annotation])
	if err != nil {
		return 0
	}
	return d
}
