// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package core

import (
	"context"
	"errors"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
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

// trees returns the trees of root tasks, for streams of all their events. The caller needs the right to watch the events of
// the namespace, because what is below a task is known only while the stream goes on. Workers read one stream at a time.
func trees(tasks *task.Resource, a authorizer.Authorizer) timeline.Trees {
	return func(ctx context.Context, namespace, name string) (*timeline.Tree, error) {
		root, err := tasks.Get(request.WithNamespace(ctx, namespace), name)
		if err != nil {
			return nil, err
		}
		if d := root.Status.Delegation; d != nil {
			return nil, apierrors.NewBadRequest(fmt.Sprintf("tree: task %s was delegated by a task of the tree of %s; ask for the stream of that one", name, d.Root))
		}
		return &timeline.Tree{
			Leftover: tasks.IsLeftover,
			Below:    func() map[types.UID]string { return tasks.Below(root.UID) },
			Allowed: func(ctx context.Context) error {
				user, ok := request.UserFrom(ctx)
				if ok = ok && !guard.IsWorker(user); ok {
					var err error
					if ok, err = guard.May(ctx, a, authorizer.AttributesRecord{Verb: "watch", Namespace: namespace, Resource: "executionevents"}); err != nil {
						return err
					}
				}
				if !ok {
					return apierrors.NewForbidden(v1alpha1.Resource("executionevents"), "", errors.New("the stream of a whole tree needs the right to watch the events of the namespace"))
				}
				return nil
			},
		}, nil
	}
}
