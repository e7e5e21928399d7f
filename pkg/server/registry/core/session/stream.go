// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package session

import (
	"context"
	"net/http"

	"k8s.io/apiserver/pkg/registry/rest"
)

// stream serves GET of stream: the events of all tasks of the session as
// server-sent events, until the session is deleted.
func (r *Resource) stream(_ context.Context, p parent, respond rest.Responder) (http.Handler, error) {
	return r.timelines.Stream(timelineOf(p), respond), nil
}
