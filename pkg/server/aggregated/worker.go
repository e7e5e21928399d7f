// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package aggregated

import (
	"context"
	"errors"
	"net/http"

	"k8s.io/apiserver/pkg/endpoints/request"

	"github.com/platform-ai/platform/pkg/apis/core/v1alpha1"
	"github.com/platform-ai/platform/pkg/server/apiserver"
	"github.com/platform-ai/platform/pkg/server/auth/worker"
	"github.com/platform-ai/platform/pkg/server/registry/core/task"
)

// identify returns the filter that establishes which task a worker works for.
func (a *assembly) identify(c *apiserver.Config) (func(http.Handler) http.Handler, error) {
	var tasks *task.Resource
	for _, r := range c.Resources {
		if t, ok := r.(*task.Resource); ok {
			tasks = t
		}
	}
	if tasks == nil {
		return nil, errors.New("tasks are not among the resources")
	}
	f, err := worker.New(worker.Options{
		Pods: a.host.CoreV1(), Jobs: a.host.BatchV1(),
		Task: func(ctx context.Context, namespace, name string) (*v1alpha1.Task, error) {
			return tasks.Get(request.WithNamespace(ctx, namespace), name)
		},
		Serializer: apiserver.Codecs(c.Scheme), Clock: a.Clock, Metrics: a.Metrics,
	})
	if err != nil {
		return nil, err
	}
	return f.Wrap, nil
}
