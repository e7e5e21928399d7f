// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package task

import (
	"context"
	"net/http"

	"k8s.io/apiserver/pkg/registry/rest"

	"github.com/platform-ai/platform/pkg/apis/core/v1alpha1"
	"github.com/platform-ai/platform/pkg/server/registry/timeline"
)

// getEvents answers GET of events with a page of the task's stream, and of events/counts with their numbers.
func (r *Resource) getEvents(req *http.Request, p parent, respond rest.Responder) {
	if p.Path == timeline.CountsPath {
		counts, err := r.timelines.Counts(req, timelineOf(p))
		if err != nil {
			respond.Error(err)
			return
		}
		respond.Object(http.StatusOK, counts)
		return
	}
	page, err := r.timelines.Page(req, timelineOf(p))
	if err != nil {
		respond.Error(err)
		return
	}
	respond.Object(http.StatusOK, page)
}

func timelineOf(p parent) *timeline.Timeline {
	return &timeline.Timeline{
		Type: v1alpha1.StreamTask, Namespace: p.Object.Namespace, Name: p.Object.Name, UID: p.Object.UID,
		Reload: func(ctx context.Context) error {
			_, err := p.Reload(ctx)
			return err
		},
		Allowed: p.Allowed,
		Leaving: func(ctx context.Context) bool {
			now, err := p.Reload(ctx)
			return err == nil && now.DeletionTimestamp != nil
		},
	}
}
