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
	"github.com/platform-ai/platform/pkg/plan"
	"github.com/platform-ai/platform/pkg/readmodel/trace"
	"github.com/platform-ai/platform/pkg/server/modelgate"
	"github.com/platform-ai/platform/pkg/server/registry/core/task/stored"
	"github.com/platform-ai/platform/pkg/storage/eventlog"
)

// maxDepth bounds how far above a task budgets are looked for. Children are at most 10 levels deep.
const maxDepth = 16

// budgets returns the token budgets of the task and of the tasks above it.
func (r *Requests) budgets(ctx context.Context, t *v1alpha1.Task) ([]modelgate.Budget, error) {
	var list []modelgate.Budget
	for range maxDepth {
		if ai := t.Spec.AI; ai != nil && ai.TokenBudget != nil {
			owner := t
			list = append(list, modelgate.Budget{Task: t.UID, Name: t.Name, Most: *ai.TokenBudget, Used: func(ctx context.Context) (*modelgate.Spent, error) { return r.o.spentBelow(ctx, owner) }})
		}
		parent, err := r.parentOf(ctx, t)
		if parent == nil || err != nil {
			return list, err
		}
		t = parent
	}
	return list, nil
}

// parentOf returns the task that delegated the task; nil if none did, or if it does not exist any more.
func (r *Requests) parentOf(ctx context.Context, t *v1alpha1.Task) (*v1alpha1.Task, error) {
	d := t.Status.Delegation
	if d == nil {
		return nil, nil //nolint:nilnil // a root
	}
	parent, err := r.o.Tasks.Get(request.WithNamespace(ctx, t.Namespace), d.Parent)
	switch {
	case apierrors.IsNotFound(err), err == nil && parent.UID != d.ParentUID:
		return nil, nil //nolint:nilnil // it was deleted
	case err != nil:
		return nil, err
	}
	return parent, nil
}

// spentBelow returns what a task and all tasks below it have used, by their stored events.
func (o *Options) spentBelow(ctx context.Context, top *v1alpha1.Task) (*modelgate.Spent, error) {
	// The server reads for itself, not for the worker that asks.
	ctx = request.WithNamespace(request.WithUser(ctx, nil), top.Namespace)
	all := &modelgate.Spent{Open: map[modelgate.Call]int64{}, Read: map[types.UID]int64{}}
	if err := o.spentBy(ctx, top, all); err != nil {
		return nil, err
	}
	if !top.Status.HasChildren { // what is delegated from now on cannot ask a model before this read is over
		return all, nil
	}
	if err := o.Trees.Known(ctx); err != nil {
		return nil, err
	}
	root, _ := stored.Root(top)
	for uid, name := range o.Trees.Below(root, top.UID) {
		t, err := o.Tasks.Get(ctx, name)
		switch {
		case apierrors.IsNotFound(err), err == nil && t.UID != uid: // it was deleted
			continue
		case err != nil:
			return nil, err
		}
		if err := o.spentBy(ctx, t, all); err != nil {
			return nil, err
		}
	}
	return all, nil
}

// spentBy adds what a task has used, by its stored events. A request whose tokens are unknown counts by the estimate of the
// gate.
func (o *Options) spentBy(ctx context.Context, t *v1alpha1.Task, all *modelgate.Spent) error {
	a, err := o.Agents.Of(ctx, t)
	if err != nil {
		return err
	}
	most := plan.MaxTokens(t, a)
	for input := int64(0); ; {
		page, err := o.Log.TaskPage(ctx, stored.Stream(t), all.Read[t.UID], usagePage, trace.UsageTypes())
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
				all.Open[call] = most + cmp.Or(input, llm.LikelyInput(c.most))
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
