// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package core

import (
	"context"
	"errors"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apiserver/pkg/authorization/authorizer"
	"k8s.io/apiserver/pkg/endpoints/request"

	"github.com/platform-ai/platform/pkg/apis/core/v1alpha1"
	"github.com/platform-ai/platform/pkg/server/registry/core/session"
	"github.com/platform-ai/platform/pkg/server/registry/core/task"
	"github.com/platform-ai/platform/pkg/server/registry/guard"
	"github.com/platform-ai/platform/pkg/server/registry/timeline"
)

// others returns the timelines that a stream of one task or session may have besides. The caller needs the right to get
// the stream of each. Workers read one stream at a time, because the guards decide on the object of the path.
func others(tasks *task.Resource, sessions *session.Resource, a authorizer.Authorizer) timeline.Others {
	return func(ctx context.Context, kind v1alpha1.StreamType, namespace, name string) (*timeline.Timeline, error) {
		resource := string(kind) + "s"
		user, ok := request.UserFrom(ctx)
		if ok = ok && !guard.IsWorker(user); ok {
			var err error
			if ok, err = guard.May(ctx, a, authorizer.AttributesRecord{Verb: "get", Namespace: namespace, Resource: resource, Subresource: "stream", Name: name}); err != nil {
				return nil, err
			}
		}
		if !ok {
			return nil, apierrors.NewForbidden(v1alpha1.Resource(resource), name, errors.New("the stream of each task and session that a request names needs the right to get it"))
		}
		ctx = request.WithNamespace(ctx, namespace)
		if kind == v1alpha1.StreamSession {
			return session.Timeline(ctx, sessions, name)
		}
		return tasks.Timeline(ctx, name)
	}
}
