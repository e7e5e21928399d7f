// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package task

import (
	"context"
	"net/http"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apiserver/pkg/endpoints/request"
	"k8s.io/apiserver/pkg/registry/rest"

	"github.com/platform-ai/platform/pkg/apis/core/v1alpha1"
	"github.com/platform-ai/platform/pkg/server/registry/core/task/stored"
	"github.com/platform-ai/platform/pkg/server/registry/resource"
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

// streamEvents serves GET of stream: the task's events as server-sent events,
// until the task has ended.
func (r *Resource) streamEvents(_ context.Context, p stored.Parent, respond rest.Responder) (http.Handler, error) {
	return r.timelines.Stream(timelineOf(p), respond), nil
}

// serveEvents serves GET of a page of events and of their counts, and POST of one event or of a list of events.
// It is a Connect subresource because a Create subresource accepts only one kind.
func (r *Resource) serveEvents(_ context.Context, p stored.Parent, respond rest.Responder) (http.Handler, error) {
	return http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		if req.Method == http.MethodGet {
			r.timelines.Answer(req, timelineOf(p), p.Path, respond)
			return
		}
		if p.Path != "" {
			respond.Error(apierrors.NewNotFound(v1alpha1.Resource("tasks/events"), p.Path))
			return
		}
		out, err := r.events.Post(w, req, p.Object)
		if err != nil {
			respond.Error(err)
			return
		}
		if resource.PrefersMinimal(req) {
			resource.AnswerMinimal(w, http.StatusCreated)
			return
		}
		respond.Object(http.StatusCreated, out)
	}), nil
}
