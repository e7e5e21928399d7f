// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package monitor

import (
	"context"
	"errors"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/platform-ai/platform/pkg/apis/core/v1alpha1"
	"github.com/platform-ai/platform/pkg/repomonitor"
)

// mutation is something that is written on the code host.
type mutation struct {
	operation   v1alpha1.MonitorOperation
	kind        v1alpha1.MonitorTargetKind
	number      int64
	head, label string
	// work or command is what it belongs to; each has at most one mutation of an operation.
	work, command string
	// do writes it. id is the same each time.
	do func(ctx context.Context, id string) (wrote, error)
}

// wrote is what was written.
type wrote struct {
	url, sha string
	// skipped says why nothing was written; empty if something was.
	skipped string
}

// mutate writes something on the code host, unless that was done before. A failure is returned only if it may pass; one that does not is in
// the row.
func (w *world) mutate(ctx context.Context, m *v1alpha1.RepositoryMonitor, of mutation) (*v1alpha1.MonitorMutation, error) {
	row := &v1alpha1.MonitorMutation{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: m.Namespace, OwnerReferences: repomonitor.OwnedBy(m),
			Name: m.Name + "-" + dashed(string(of.operation)) + "-" + repomonitor.Digest(m.UID, of.operation, of.work, of.command),
		},
		Spec: v1alpha1.MonitorMutationSpec{
			MonitorName: m.Name, MonitorUID: m.UID, TargetKind: of.kind, Number: of.number, Operation: of.operation, HeadSHA: of.head, Label: of.label, WorkAction: of.work, Command: of.command,
		},
	}
	if _, err := w.ensure(ctx, row); err != nil {
		return nil, fmt.Errorf("mutation: %w", err)
	}
	if row.Status.State != v1alpha1.MonitorPublishStarted {
		return row, nil
	}
	done, err := of.do(ctx, row.Name)
	failed, ok := errors.AsType[failure](err)
	if err != nil && !ok {
		return nil, err
	}
	before := row.DeepCopy()
	s := &row.Status
	switch {
	case ok && w.retry(failed, &s.Attempts, &s.NextAttemptAt, &s.Message):
		failed.RetryAfterSeconds = max(failed.RetryAfterSeconds, int64(failed.wait(s.Attempts).Seconds()))
	case ok:
		err, s.State, s.Reason, s.Message = nil, v1alpha1.MonitorPublishFailed, string(failed.Reason), failed.Message
	case done.skipped != "":
		s.State, s.Message = v1alpha1.MonitorPublishSkipped, done.skipped
	default:
		s.State, s.URL, s.SHA, s.Message = v1alpha1.MonitorPublishSucceeded, done.url, done.sha, ""
	}
	if s.State != v1alpha1.MonitorPublishStarted {
		s.Attempts++
		s.CompletedAt, s.NextAttemptAt = w.time(), nil
		w.counts.mutations.WithLabelValues(string(of.operation), string(s.State)).Inc()
	}
	if patched := w.Status().Patch(ctx, row, client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{})); patched != nil {
		return nil, fmt.Errorf("mutation: %w", patched)
	}
	if err != nil {
		return row, failed
	}
	return row, nil
}
