// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package task

import (
	"context"
	"errors"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apiserver/pkg/endpoints/request"
	"k8s.io/klog/v2"

	"github.com/platform-ai/platform/pkg/server/registry/core/task/stored"
	"github.com/platform-ai/platform/pkg/server/registry/resource"
	"github.com/platform-ai/platform/pkg/storage/blob"
	"github.com/platform-ai/platform/pkg/storage/eventlog"
)

// sweeper removes what is left of tasks.
type sweeper struct {
	forget func(ctx context.Context, s eventlog.Stream) error // removes the content of a task
	tasks  stored.Tasks
	log    *eventlog.Log
	blobs  *blob.Store
}

// sweep removes the content of tasks that no longer exist. Such content remains
// if a crash occurs after a task is removed and before its content is. It first
// lists the content and then looks up each owner, for the reason given at
// resource.Sweep.
func (r sweeper) sweep(ctx context.Context) {
	log := klog.FromContext(ctx)
	known := map[types.UID]bool{}
	orphans := 0
	err := r.log.Streams(ctx, func(s eventlog.Stream) error {
		exists, err := r.exists(ctx, s)
		if err != nil {
			return err
		}
		known[s.UID] = exists
		if exists {
			return nil
		}
		orphans++
		return r.forget(ctx, s)
	})
	if err == nil {
		var removed int
		removed, err = r.sweepBlobs(ctx, known)
		orphans += removed
	}
	switch {
	case err != nil && ctx.Err() == nil && !errors.Is(err, eventlog.ErrShutdown):
		log.Error(err, "Cannot remove the content of deleted tasks; the next start removes it")
	case orphans > 0:
		log.Info("Removed content of deleted tasks", "tasks", orphans)
	}
}

// sweepBlobs removes blobs whose owner has no event stream. Their owners are
// known by UID only, so if there are any, all tasks are listed.
func (r sweeper) sweepBlobs(ctx context.Context, known map[types.UID]bool) (int, error) {
	return resource.Sweep(ctx, r.blobs, known, r.tasks)
}

// exists reports whether the stream's task is in the object store.
func (r sweeper) exists(ctx context.Context, s eventlog.Stream) (bool, error) {
	t, err := r.tasks.Get(request.WithNamespace(ctx, s.Namespace), s.Task)
	if apierrors.IsNotFound(err) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	return t.UID == s.UID, nil
}
