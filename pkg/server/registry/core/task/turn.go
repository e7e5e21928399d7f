// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package task

import (
	"context"
	"slices"

	"k8s.io/apiserver/pkg/endpoints/request"
	"k8s.io/klog/v2"

	"github.com/platform-ai/platform/pkg/apis/core/v1alpha1"
	"github.com/platform-ai/platform/pkg/server/registry/core/task/delegation"
	"github.com/platform-ai/platform/pkg/server/registry/core/task/fork"
	"github.com/platform-ai/platform/pkg/server/registry/core/task/prior"
	"github.com/platform-ai/platform/pkg/server/registry/guard"
)

// begin decides whether a task may be created, and for whom: a worker creates children of its own task. Tasks of other callers are never
// children, whatever labels and owner references they have.
func (r *Resource) begin(ctx context.Context, t *v1alpha1.Task, dryRun bool) (next context.Context, done func(created bool), err error) {
	if ctx, err = r.priors.Begin(ctx, t); err != nil {
		return nil, nil, err
	}
	if user, ok := request.UserFrom(ctx); ok && guard.IsWorker(user) {
		return r.delegations.Begin(ctx, t, dryRun)
	}
	return r.requesters.Begin(ctx, t, dryRun)
}

// prepareForCreate sets the fields of a new task that the server determines.
func (r *Resource) prepareForCreate(ctx context.Context, t *v1alpha1.Task) {
	r.requesters.SetUser(ctx, t)
	delegation.Set(ctx, t)
	prior.Set(ctx, t)
	fork.SetGates(t)
	completeAgentTask(t)
	r.requesters.Apply(ctx, t)
	r.setTurn(ctx, t)
}

// setTurn records the revision of the store at the creation, which orders tasks by creation. A task that is created
// after the creation of another was acknowledged has a higher revision, even within the same second or after a
// restart with a wrong clock.
func (r *Resource) setTurn(ctx context.Context, t *v1alpha1.Task) {
	revision, err := r.tasks.Revision(ctx)
	if err != nil { // the task is then ordered like one from an older server
		klog.FromContext(ctx).Error(err, "Cannot record where a new task comes in the order of creation", "task", klog.KObj(t))
		return
	}
	t.Status.CreationRevision = int64(revision)
}

// prepareForStatus preserves what the server recorded.
func (r *Resource) prepareForStatus(ctx context.Context, t, old *v1alpha1.Task) {
	keepRecorded(ctx, t, old)
	r.requesters.Report(t, old)
}

// keepRecorded preserves what the server recorded in updates of the status: older clients do not know the fields, and
// no client may change them.
func keepRecorded(ctx context.Context, t, old *v1alpha1.Task) {
	t.Status.CreationRevision = old.Status.CreationRevision
	t.Status.ScheduleSince = old.Status.ScheduleSince.DeepCopy()
	t.Status.ApprovalRequiredTools = slices.Clone(old.Status.ApprovalRequiredTools)
	delegation.Keep(ctx, t, old)
	prior.Keep(t, old)
}
