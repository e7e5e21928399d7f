// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package session

import (
	"context"
	"net/http"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apiserver/pkg/endpoints/request"
	"k8s.io/apiserver/pkg/registry/rest"

	"github.com/platform-ai/platform/pkg/apis/core/v1alpha1"
	"github.com/platform-ai/platform/pkg/server/registry/resource"
	"github.com/platform-ai/platform/pkg/server/registry/timeline"
)

type parent = resource.Parent[*v1alpha1.Session]

// events serves GET of events: a page of the events of the session's tasks, in
// the order in which they were stored, or their counts.
func (r *Resource) events(_ context.Context, p parent, respond rest.Responder) (http.Handler, error) {
	return http.HandlerFunc(func(_ http.ResponseWriter, req *http.Request) {
		r.timelines.Answer(req, timelineOf(p), p.Path, respond)
	}), nil
}

func timelineOf(p parent) *timeline.Timeline {
	return &timeline.Timeline{
		Type: v1alpha1.StreamSession, Namespace: p.Object.Namespace, Name: p.Object.Name, UID: p.Object.UID,
		Reload: func(ctx context.Context) error {
			_, err := p.Reload(ctx)
			return err
		},
		Allowed: p.Allowed,
	}
}

// Timeline returns the timeline of a session of r in the request's namespace. The caller must already have been authorized to
// read it. Errors are API errors.
func Timeline(ctx context.Context, r *Resource, name string) (*timeline.Timeline, error) {
	s, err := find(ctx, r, name)
	if err != nil {
		return nil, err
	}
	return &timeline.Timeline{
		Type: v1alpha1.StreamSession, Namespace: s.Namespace, Name: s.Name, UID: s.UID,
		Reload: func(ctx context.Context) error {
			now, err := find(request.WithNamespace(ctx, s.Namespace), r, name)
			if err == nil && now.UID != s.UID {
				err = apierrors.NewNotFound(v1alpha1.Resource("sessions"), name)
			}
			return err
		},
	}, nil
}

// find reads a session. The store's error names the resource of the request, which may be another one.
func find(ctx context.Context, r *Resource, name string) (*v1alpha1.Session, error) {
	s, err := r.stored.Get(ctx, name)
	if apierrors.IsNotFound(err) {
		return nil, apierrors.NewNotFound(v1alpha1.Resource("sessions"), name)
	}
	return s, err
}
