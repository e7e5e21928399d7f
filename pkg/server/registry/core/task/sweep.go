// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package task

import (
	"context"
	"errors"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/internalversion"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apiserver/pkg/endpoints/request"
	"k8s.io/klog/v2"

	"github.com/platform-ai/platform/pkg/apis/core/v1alpha1"
	"github.com/platform-ai/platform/pkg/storage/eventlog"
)

// sweep removes what tasks left that no longer exist, because a crash came
// between their removal and that of their content. It first takes down what
// there is and then asks for each owner: content is only ever written for a
// task that exists, and a UID never comes back, so what has no task then is an
// orphan.
func (r *Resource) sweep(ctx context.Context) {
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
		err = r.sweepBlobs(ctx, known, &orphans)
	}
	switch {
	case err != nil && ctx.Err() == nil && !errors.Is(err, eventlog.ErrShutdown):
		log.Error(err, "Content of deleted tasks stays until the next start")
	case orphans > 0:
		log.Info("Removed content of deleted tasks", "tasks", orphans)
	}
}

// sweepBlobs looks at owners of blobs that have no event stream. Such a task is
// found by its UID only, so all are listed when there is one.
func (r *Resource) sweepBlobs(ctx context.Context, known map[types.UID]bool, orphans *int) error {
	var unknown []types.UID
	err := r.blobs.Owners(ctx, func(uid types.UID) error {
		if !known[uid] {
			unknown = append(unknown, uid)
		}
		return nil
	})
	if err != nil || len(unknown) == 0 {
		return err
	}
	uids, err := r.uids(ctx)
	if err != nil {
		return err
	}
	for _, uid := range unknown {
		if uids[uid] {
			continue
		}
		*orphans++
		if err := r.blobs.Delete(ctx, uid); err != nil {
			return err
		}
	}
	return nil
}

// exists reports whether the stream's task is in the store.
func (r *Resource) exists(ctx context.Context, s eventlog.Stream) (bool, error) {
	t, err := r.get(request.WithNamespace(ctx, s.Namespace), s.Task)
	if apierrors.IsNotFound(err) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	return t.UID == s.UID, nil
}

// listPage is how many tasks are read at a time.
const listPage = 500

// uids lists the UIDs of all tasks.
func (r *Resource) uids(ctx context.Context) (map[types.UID]bool, error) {
	all := map[types.UID]bool{}
	err := r.eachPage(ctx, &internalversion.ListOptions{}, func(t *v1alpha1.Task) { all[t.UID] = true })
	return all, err
}

// eachPage calls f for the tasks of a list that is read in pages.
func (r *Resource) eachPage(ctx context.Context, opts *internalversion.ListOptions, f func(*v1alpha1.Task)) error {
	tasks, err := r.storage()
	if err != nil {
		return err
	}
	for opts.Limit = listPage; ; {
		obj, err := tasks.List(ctx, opts)
		if err != nil {
			return err
		}
		list, ok := obj.(*v1alpha1.TaskList)
		if !ok {
			return fmt.Errorf("list of tasks gave %T", obj)
		}
		for i := range list.Items {
			f(&list.Items[i])
		}
		if list.Continue == "" {
			return nil
		}
		opts.Continue = list.Continue
	}
}
