// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package task

import (
	"context"
	"net/http"

	"k8s.io/apiserver/pkg/registry/rest"

	"github.com/platform-ai/platform/pkg/server/registry/core/task/stored"
)

// streamEvents serves GET of stream: the task's events as server-sent events,
// until the task has ended.
func (r *Resource) streamEvents(_ context.Context, p stored.Parent, respond rest.Responder) (http.Handler, error) {
	return r.timelines.Stream(timelineOf(p), respond), nil
}
