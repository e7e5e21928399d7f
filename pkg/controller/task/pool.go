// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package task

import (
	"context"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/platform-ai/platform/pkg/agentprogram"
	"github.com/platform-ai/platform/pkg/apis/core/v1alpha1"
	"github.com/platform-ai/platform/pkg/controller/executor"
)

// pooled takes places in RuntimePools for tasks with a coding agent. It makes the pool with the first task that needs it.
type pooled struct {
	places  *Pools
	options agentprogram.PoolOptions
	// image returns what is run for a type, pinned by its digest.
	image func(v1alpha1.AgentRuntimeType) (string, error)
	// existing returns a pool by its name, and creates it if there is none.
	existing func(ctx context.Context, p *v1alpha1.RuntimePool) (*v1alpha1.RuntimePool, error)
	// note writes news about the task for people.
	note func(ctx context.Context, t *v1alpha1.Task, reason, message string)
}

// take gives a task with a coding agent a place in its pool, or returns a queued error while it has to wait for one. It does nothing for
// other tasks.
func (s pooled) take(ctx context.Context, t *v1alpha1.Task, kind v1alpha1.AgentRuntimeType) error {
	if kind == "" {
		return nil
	}
	image, err := s.image(kind)
	if err != nil {
		return fmt.Errorf("runtime pool: %w", err)
	}
	account := accountOf(t)
	pool, err := s.existing(ctx, s.options.Pool(t.Namespace, "system:serviceaccount:"+account.Namespace+":"+account.Name, kind, image))
	if err != nil {
		return fmt.Errorf("runtime pool: %w", err)
	}
	if t.Status.Execution == nil {
		t.Status.Execution = &v1alpha1.TaskExecutionStatus{}
	}
	e := t.Status.Execution
	if was := e.RuntimePoolName; was != "" && was != pool.Name && e.State == v1alpha1.ExecutionQueued {
		s.note(ctx, t, v1alpha1.EventReasonPoolRebound, fmt.Sprintf("waits in the pool %s and no longer in %s, because the program of %s was changed", pool.Name, was, kind))
	}
	e.RuntimePoolName, e.RuntimePoolUID = pool.Name, pool.UID
	return s.places.take(ctx, t, types.NamespacedName{Namespace: pool.Namespace, Name: pool.Name}, agentprogram.LimitsOf(pool))
}

// poolAPI reads and creates RuntimePools.
type poolAPI struct{ *wire }

func (w poolAPI) existing(ctx context.Context, p *v1alpha1.RuntimePool) (*v1alpha1.RuntimePool, error) {
	var found v1alpha1.RuntimePool
	key := client.ObjectKeyFromObject(p)
	err := w.Get(ctx, key, &found)
	if !apierrors.IsNotFound(err) {
		return &found, err
	}
	err = w.Create(ctx, p)
	if apierrors.IsAlreadyExists(err) { // made a moment ago
		return &found, w.live.Get(ctx, key, &found)
	}
	return p, err
}

// ImageOf returns the function that says what an executor runs for a type of coding agents.
func ImageOf(e executor.Executor) func(v1alpha1.AgentRuntimeType) (string, error) {
	if host, ok := e.(executor.AgentHost); ok {
		return host.AgentImage
	}
	return func(t v1alpha1.AgentRuntimeType) (string, error) { return "", fmt.Errorf("no %s can be run here", t) }
}
