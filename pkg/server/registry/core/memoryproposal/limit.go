// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package memoryproposal

import (
	"context"
	"fmt"
	"sync"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/internalversion"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/platform-ai/platform/pkg/apis/core/v1alpha1"
	"github.com/platform-ai/platform/pkg/server/registry/resource"
)

// maxProposals is how many proposals of one task may exist at a time. They have at most some 20 MiB together.
const maxProposals = 100

// proposing counts, by task, the proposals of runs that are being created. Nobody waits for another proposal, or for the policies and
// webhooks that judge it: each counts those that exist, after it has its place among those that are being created.
type proposing struct {
	mu    sync.Mutex
	tasks map[types.UID]int
}

// begin counts one more proposal of a task until done is called. It returns how many there are with it.
func (p *proposing) begin(task types.UID) (n int, done func()) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.tasks == nil {
		p.tasks = map[types.UID]int{}
	}
	p.tasks[task]++
	return p.tasks[task], func() {
		p.mu.Lock()
		defer p.mu.Unlock()
		if p.tasks[task]--; p.tasks[task] == 0 {
			delete(p.tasks, task)
		}
	}
}

// beginCreate refuses a proposal of a run whose task has made too many. People are not concerned.
func (r *Resource) beginCreate(ctx context.Context, p *v1alpha1.MemoryProposal, _ bool) (context.Context, func(bool), error) {
	t, err := r.o.Caller(ctx)
	if err != nil || t == nil {
		return ctx, nil, err
	}
	// Of the proposals that are created at the same time, the last one to begin counts all others: they exist, or are in its number.
	begun, done := r.proposing.begin(t.UID)
	exist, err := r.proposed(ctx, t)
	if err == nil && exist+begun > maxProposals {
		err = apierrors.NewForbidden(v1alpha1.Resource("memoryproposals"), p.Name, fmt.Errorf("task %q has made %d proposals, and a task makes no more", t.Name, maxProposals))
	}
	if err != nil {
		done()
		return nil, nil, err
	}
	return ctx, func(bool) { done() }, nil
}

// proposed counts the proposals of a task that exist.
func (r *Resource) proposed(ctx context.Context, t *v1alpha1.Task) (n int, err error) {
	proposals, err := r.o.Stored.AsCaller()
	if err != nil {
		return 0, err
	}
	// The guard lists for a worker only what is narrowed to its task.
	err = resource.EachObject(ctx, proposals, &internalversion.ListOptions{FieldSelector: ofTask(t)}, func(o metav1.Object) {
		if p, ok := o.(*v1alpha1.MemoryProposal); ok && originOf(p).TaskUID == t.UID {
			n++
		}
	})
	return n, err
}
