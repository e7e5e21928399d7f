// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package session

import (
	"context"
	"net/http"

	"k8s.io/apiserver/pkg/registry/rest"

	"github.com/platform-ai/platform/pkg/apis/core/v1alpha1"
	"github.com/platform-ai/platform/pkg/registry/timeline"
)

// timelines are the subresources about the events of a session.
type timelines struct {
	server *timeline.Server
}

// stream serves GET of stream: the events of all tasks of the session as
// server-sent events, until the session is deleted.
func (r timelines) stream(_ context.Context, p parent, respond rest.Responder) (http.Handler, error) {
	return r.server.Stream(timelineOf(p), respond), nil
}

// ended ends the streams of a deleted session.
func (r timelines) ended(_ context.Context, s *v1alpha1.Session) { r.server.Deleted(s.UID) }
