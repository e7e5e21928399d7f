// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package content

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
	"github.com/platform-ai/platform/pkg/storage/recording"
)

// Remains removes what is left of tasks that are gone: their events, their recordings and their content. All fields are required.
type Remains struct {
	Tasks      stored.Tasks
	Log        *eventlog.Log
	Blobs      *blob.Store
	Recordings *recording.Store
	// Release ends what the task with a UID has reserved of Budgets.
	Release func(uid types.UID) error
}

// Sweep removes the content of tasks that no longer exist. Such content remains
// if a crash occurs after a task is removed and before its content is. It first
// lists the content and then looks up each owner, for the reason given at
// resource.Sweep.
func (r Remains) Sweep(ctx context.Context) {
	log := klog.FromContext(ctx)
	known := map[types.UID]bool{}
	orphans := 0
	err := r.Log.Streams(ctx, func(s eventlog.Stream) error {
		exists, err := r.exists(ctx, s)
		if err != nil {
			return err
		}
		known[s.UID] = exists
		if exists {
			return nil
		}
		orphans++
		return r.Forget(ctx, s)
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
func (r Remains) sweepBlobs(ctx context.Context, known map[types.UID]bool) (int, error) {
	return resource.Sweep(ctx, r.Blobs, known, r.Tasks)
}

// exists reports whether the stream's task is in the object store.
func (r Remains) exists(ctx context.Context, s eventlog.Stream) (bool, error) {
	t, err := r.Tasks.Get(request.WithNamespace(ctx, s.Namespace), s.Task)
	if apierrors.IsNotFound(err) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	return t.UID == s.UID, nil
}

// Forget removes the events and the content of a task that is gone.
func (r Remains) Forget(ctx context.Context, s eventlog.Stream) error {
	if err := r.Log.DeleteStream(ctx, s); err != nil {
		return err
	}
	if err := r.Release(s.UID); err != nil {
		return err
	}
	if err := r.Recordings.Delete(s.UID); err != nil {
		return err
	}
	return r.Blobs.Delete(ctx, s.UID)
}
