// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package task

import (
	"context"

	"k8s.io/klog/v2"

	"github.com/platform-ai/platform/pkg/apis/core/v1alpha1"
)

// prepareForCreate sets what the server says about a new task.
func (r *Resource) prepareForCreate(ctx context.Context, t *v1alpha1.Task) {
	r.setRequester(ctx, t)
	r.setTurn(ctx, t)
}

// setTurn notes the revision of the store at the creation. What is created
// after another task was acknowledged has a higher one, within one second and
// after a restart with a wrong clock, too.
func (r *Resource) setTurn(ctx context.Context, t *v1alpha1.Task) {
	tasks, err := r.storage()
	var revision uint64
	if err == nil {
		revision, err = tasks.Revision(ctx)
	}
	if err != nil { // it is then ordered as a task of an older server
		klog.FromContext(ctx).Error(err, "A task is created without its place among others", "task", klog.KObj(t))
		return
	}
	t.Status.CreationRevision = int64(revision)
}

// keepTurn keeps the place of a task, whoever writes its status: clients that are older do not know of it.
func keepTurn(_ context.Context, t, old *v1alpha1.Task) {
	t.Status.CreationRevision = old.Status.CreationRevision
}
