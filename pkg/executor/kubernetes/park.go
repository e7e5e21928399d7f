// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package kubernetes

import (
	"context"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	"k8s.io/client-go/util/retry"

	"github.com/platform-ai/platform/pkg/executor"
)

// Park takes the Job's deadline away, or puts it back, later by what the run was parked.
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

// parking is the patch that parks a Job or lets it go on; nil when there is nothing to change.
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
		total += max(0, now.Sub(at)) // clocks of two controllers may differ
	}
	metadata["annotations"] = map[string]any{annotationParkedAt: nil, annotationParked: total.String()}
	change := map[string]any{"metadata": metadata}
	if timeout := duration(job, annotationTimeout); timeout > 0 {
		change["spec"] = map[string]any{"activeDeadlineSeconds": *seconds(timeout + total)}
	}
	return change
}

// duration reads an annotation; 0 where it is none.
func duration(job *batchv1.Job, annotation string) time.Duration {
	d, err := time.ParseDuration(job.Annotations[annotation])
	if err != nil {
		return 0
	}
	return d
}
