// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package task

import (
	"context"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apiserver/pkg/endpoints/request"

	"github.com/platform-ai/platform/pkg/apis/core/v1alpha1"
	"github.com/platform-ai/platform/pkg/server/registry/core/task/stored"
	"github.com/platform-ai/platform/pkg/server/registry/timeline"
)

// Timeline returns the timeline of a task in the request's namespace. The caller must already have been authorized to
// read it. Errors are API errors.
func (r *Resource) Timeline(ctx context.Context, name string) (*timeline.Timeline, error) {
	t, err := r.tasks.Get(ctx, name)
	if err != nil {
		return nil, err
	}
	return timelineFrom(t, func(ctx context.Context) (*v1alpha1.Task, error) {
		now, err := r.tasks.Get(request.WithNamespace(ctx, t.Namespace), name)
		if err == nil && now.UID != t.UID {
			err = apierrors.NewNotFound(v1alpha1.Resource("tasks"), name)
		}
		return now, err
	}, nil), nil
}

func timelineOf(p stored.Parent) *timeline.Timeline {
	return timelineFrom(p.Object, p.Reload, p.Allowed)
}

func timelineFrom(t *v1alpha1.Task, reload func(context.Context) (*v1alpha1.Task, error), allowed func(context.Context) error) *timeline.Timeline {
	return &timeline.Timeline{
		Type: v1alpha1.StreamTask, Namespace: t.Namespace, Name: t.Name, UID: t.UID,
		Reload: func(ctx context.Context) error {
			_, err := reload(ctx)
			return err
		},
		Allowed: allowed,
		Leaving: func(ctx context.Context) bool {
			now, err := reload(ctx)
			return err == nil && now.DeletionTimestamp != nil
		},
	}
}
