// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package session

import (
	"context"
	"net/http"

	"k8s.io/apiserver/pkg/registry/rest"

	"github.com/platform-ai/platform/pkg/apis/core/v1alpha1"
	"github.com/platform-ai/platform/pkg/server/registry/resource"
	"github.com/platform-ai/platform/pkg/server/registry/timeline"
)

type parent = resource.Parent[*v1alpha1.Session]

// events serves GET of events: a page of the events of the session's tasks, in
// the order in which they were stored.
func (r *Resource) events(_ context.Context, p parent, respond rest.Responder) (http.Handler, error) {
	return http.HandlerFunc(func(_ http.ResponseWriter, req *http.Request) {
		page, err := r.timelines.Page(req, timelineOf(p))
		if err != nil {
			respond.Error(err)
			return
		}
		respond.Object(http.StatusOK, page)
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
