// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package task

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metainternalversion "k8s.io/apimachinery/pkg/apis/meta/internalversion"
	"k8s.io/apiserver/pkg/endpoints/request"

	"github.com/platform-ai/platform/pkg/apis/core/v1alpha1"
	"github.com/platform-ai/platform/pkg/llm"
	"github.com/platform-ai/platform/pkg/plan"
	"github.com/platform-ai/platform/pkg/readmodel/trace"
	"github.com/platform-ai/platform/pkg/server/modelgate"
	"github.com/platform-ai/platform/pkg/storage/eventlog"
)

// maxDepth bounds how far above a task budgets are looked for. Children are at most 10 levels deep.
const maxDepth = 16

// budgets returns the token budgets of the task and of the tasks above it.
func (r gated) budgets(ctx context.Context, t *v1alpha1.Task) ([]modelgate.Budget, error) {
	var list []modelgate.Budget
	for range maxDepth {
		if ai := t.Spec.AI; ai != nil && ai.TokenBudget != nil {
			owner := t
			list = append(list, modelgate.Budget{Task: t.UID, Name: t.Name, Most: *ai.TokenBudget, Used: func() (int64, error) { return r.usedBelow(ctx, owner) }})
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
func (r gated) parentOf(ctx context.Context, t *v1alpha1.Task) (*v1alpha1.Task, error) {
	d := t.Status.Delegation
	if d == nil {
		return nil, nil //nolint:nilnil // a root
	}
	parent, err := r.get(request.WithNamespace(ctx, t.Namespace), d.Parent)
	switch {
	case apierrors.IsNotFound(err), err == nil && parent.UID != d.ParentUID:
		return nil, nil //nolint:nilnil // it was deleted
	case err != nil:
		return nil, err
	}
	return parent, nil
}

// usedBelow returns the tokens that a task and all tasks below it have used, by their stored events.
func (r gated) usedBelow(ctx context.Context, root *v1alpha1.Task) (int64, error) {
	tasks, err := r.storage()
	if err != nil {
		return 0, err
	}
	// The server reads for itself, not for the worker that asks.
	ctx = request.WithNamespace(request.WithUser(ctx, nil), root.Namespace)
	obj, err := tasks.List(ctx, &metainternalversion.ListOptions{})
	if err != nil {
		return 0, err
	}
	all, ok := obj.(*v1alpha1.TaskList)
	if !ok {
		return 0, fmt.Errorf("list of tasks: got %T", obj)
	}
	var sum int64
	for i := range all.Items {
		t := &all.Items[i]
		if d := t.Status.Delegation; t.UID == root.UID || d != nil && slices.Contains(d.Ancestors, root.UID) {
			used, err := r.usedBy(ctx, t)
			if err != nil {
				return 0, err
			}
			sum += used
		}
	}
	return sum, nil
}

// usedBy returns the tokens that a task has used, by its stored events. A request whose tokens are unknown counts by
// the estimate of the gate.
func (r gated) usedBy(ctx context.Context, t *v1alpha1.Task) (int64, error) {
	a, err := kin(r).agentOf(ctx, t)
	if err != nil {
		return 0, err
	}
	most := plan.MaxTokens(t, a)
	var sum, input, after int64
	open := map[string]int64{}
	for {
		page, err := r.log.TaskPage(ctx, stream(t), after, usagePage, trace.UsageTypes())
		if errors.Is(err, eventlog.ErrDeleted) {
			return sum, nil
		}
		if err != nil {
			return 0, err
		}
		for _, e := range page.Events {
			c := callOf(e)
			if e.Type == v1alpha1.EventModelRequestStarted {
				open[c.id] = most + cmp.Or(input, llm.LikelyInput(c.most))
				sum += open[c.id]
				continue
			}
			if used := c.out.Used(); used != nil {
				sum += *used - open[c.id]
			}
			delete(open, c.id)
			if c.input != nil {
				input = *c.input
			}
		}
		if after = page.Next; after >= page.Latest {
			return sum, nil
		}
	}
}

// usagePage is how many events are read at a time.
const usagePage = 500
