// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package task

import (
	"context"

	"k8s.io/apimachinery/pkg/types"

	"github.com/platform-ai/platform/pkg/apis/core/v1alpha1"
)

// Each calls f with each task of the request's namespace, in the order of names, as of one revision, which it returns; 0 is
// the newest. It is for the server itself: no guard is asked. The tasks are shared, so f must not change them.
func (r *Resource) Each(ctx context.Context, revision uint64, f func(*v1alpha1.Task) error) (uint64, error) {
	return r.tasks.Each(ctx, revision, f)
}

// Usage returns what a task has used as of a revision, which is that of the task or a later one; nil if nothing is known.
func (r *Resource) Usage(ctx context.Context, t *v1alpha1.Task, revision uint64) *v1alpha1.TaskUsage {
	return r.meters.UsageAt(ctx, t, revision)
}

// Summary returns what a list shows of a task, without what it has used and how long it has run.
func Summary(t *v1alpha1.Task) v1alpha1.TaskSummary {
	s := v1alpha1.TaskSummary{
		Name: t.Name, UID: t.UID, Type: t.Spec.Type, Phase: phase(t), Agent: agent(t), Model: model(t),
		CreationTimestamp: t.CreationTimestamp, StartTime: t.Status.StartTime, CompletionTime: t.Status.CompletionTime,
	}
	if d := t.Status.Delegation; d != nil {
		s.Parent = d.Parent
	}
	return s
}

// IsLeftover is that of the trees.
func (r *Resource) IsLeftover(uid types.UID) bool { return r.trees.IsLeftover(uid) }

// Below returns the names of the tasks that exist below a root task, by their UIDs.
func (r *Resource) Below(root types.UID) map[types.UID]string { return r.trees.Below(root, root) }

// RootUID returns the UID of the root of the tree of a delegated task; empty if there is no such task.
func (r *Resource) RootUID(uid types.UID) types.UID { return r.trees.Root(uid) }
