// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package memoryproposal

import (
	"context"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/internalversion"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/platform-ai/platform/pkg/apis/core/v1alpha1"
	"github.com/platform-ai/platform/pkg/server/registry/resource"
)

// maxProposals is how many proposals of one task may exist at a time. They have at most some 20 MiB together.
const maxProposals = 100

// beginCreate refuses a proposal of a run whose task has made too many. People are not concerned.
func (r *Resource) beginCreate(ctx context.Context, p *v1alpha1.MemoryProposal, _ bool) (context.Context, func(bool), error) {
	t, err := r.o.Caller(ctx)
	if err != nil || t == nil {
		return ctx, nil, err
	}
	r.proposing.Lock()
	n, err := r.proposed(ctx, t)
	if err == nil && n >= maxProposals {
		err = apierrors.NewForbidden(v1alpha1.Resource("memoryproposals"), p.Name, fmt.Errorf("task %q has made %d proposals, and a task makes no more", t.Name, n))
	}
	if err != nil {
		r.proposing.Unlock()
		return nil, nil, err
	}
	return ctx, func(bool) { r.proposing.Unlock() }, nil
}

// proposed counts the proposals of a task that exist.
func (r *Resource) proposed(ctx context.Context, t *v1alpha1.Task) (n int, err error) {
	proposals, err := r.lister()
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
