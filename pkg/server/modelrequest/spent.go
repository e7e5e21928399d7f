// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package modelrequest

import (
	"cmp"
	"context"
	"errors"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apiserver/pkg/endpoints/request"

	"github.com/platform-ai/platform/pkg/apis/core/v1alpha1"
	"github.com/platform-ai/platform/pkg/llm"
	"github.com/platform-ai/platform/pkg/readmodel/trace"
	"github.com/platform-ai/platform/pkg/server/modelgate"
	"github.com/platform-ai/platform/pkg/server/registry/core/task/stored"
	"github.com/platform-ai/platform/pkg/storage/eventlog"
)

// maxDepth bounds how far above a task limits are looked for. Children are at most 10 levels deep.
const maxDepth = 16

// above returns the tasks above the task, the nearest first. It ends before one that does not exist any more.
func (r *Tasks) above(ctx context.Context, t *v1alpha1.Task) ([]*v1alpha1.Task, error) {
	var all []*v1alpha1.Task
	for d := t.Status.Delegation; d != nil && len(all) < maxDepth; {
		parent, err := unlessGone(r.all.o.Task(request.WithNamespace(ctx, t.Namespace), d.Parent))
		switch {
		case err != nil:
			return nil, err
		case parent == nil, parent.UID != d.ParentUID:
			return all, nil
		}
		all, d = append(all, parent), parent.Status.Delegation
	}
	return all, nil
}

// spentBelow returns what a task and all tasks below it have used, by their stored events.
func (r *Tasks) spentBelow(ctx context.Context, top *v1alpha1.Task) (*modelgate.Spent, error) {
	// The server reads for itself, not for the worker that asks.
	ctx = request.WithNamespace(request.WithUser(ctx, nil), top.Namespace)
	all := &modelgate.Spent{Open: map[modelgate.Call]int64{}, Read: map[types.UID]int64{}}
	if err := r.spentBy(ctx, top, all); err != nil {
		return nil, err
	}
	if !top.Status.HasChildren { // what is delegated from now on cannot ask a model before this read is over
		return all, nil
	}
	if err := r.trees.Known(ctx); err != nil {
		return nil, err
	}
	root, _ := stored.Root(top)
	for uid, name := range r.trees.Below(root, top.UID) {
		t, err := r.all.o.Task(ctx, name)
		switch {
		case apierrors.IsNotFound(err), err == nil && t.UID != uid: // it was deleted
			continue
		case err != nil:
			return nil, err
		}
		if err := r.spentBy(ctx, t, all); err != nil {
			return nil, err
		}
	}
	return all, nil
}

// spentBy adds what a task has used, by its stored events. A request whose tokens are unknown counts by the estimate of the
// gate.
func (r *Tasks) spentBy(ctx context.Context, t *v1alpha1.Task, all *modelgate.Spent) error {
	a, err := r.all.o.Agent.Of(ctx, t)
	if err != nil {
		return err
	}
	for input := int64(0); ; {
		page, err := r.log.TaskPage(ctx, stored.Stream(t), all.Read[t.UID], usagePage, trace.UsageTypes())
		if errors.Is(err, eventlog.ErrDeleted) {
			return nil
		}
		if err != nil {
			return err
		}
		for _, e := range page.Events {
			c := callOf(e)
			call := modelgate.Call{Task: t.UID, ID: c.id}
			if e.Type == v1alpha1.EventModelRequestStarted {
				all.Open[call] = maxTokens(t, a, c) + cmp.Or(input, llm.LikelyInput(c.most))
				all.Tokens += all.Open[call]
				continue
			}
			if used := c.out.Used(); used != nil {
				all.Tokens += *used - all.Open[call]
			}
			delete(all.Open, call)
			if c.input != nil {
				input = *c.input
			}
		}
		if all.Read[t.UID] = page.Next; page.Next >= page.Latest {
			return nil
		}
	}
}

// usagePage is how many events are read at a time.
const usagePage = 500
