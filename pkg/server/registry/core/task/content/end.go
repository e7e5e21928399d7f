// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package content

import (
	"context"
	"errors"
	"hash/maphash"
	"sync"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apiserver/pkg/endpoints/request"

	"github.com/platform-ai/platform/pkg/apis/core/v1alpha1"
	"github.com/platform-ai/platform/pkg/server/registry/core/task/refusal"
	"github.com/platform-ai/platform/pkg/server/registry/core/task/stored"
	"github.com/platform-ai/platform/pkg/server/registry/guard"
	"github.com/platform-ai/platform/pkg/server/registry/resource"
)

// ends are locks that order the writes of a task's content and its end. Content may be written concurrently, but not
// while an event that ends the task is being stored. Content is therefore either written before the end or refused.
// Several tasks may share a lock.
type ends [64]sync.RWMutex

var seed = maphash.MakeSeed()

func (e *ends) of(uid types.UID) *sync.RWMutex {
	return &e[maphash.String(seed, string(uid))%uint64(len(e))]
}

// end waits until all content being written is stored, and blocks further writes until done is called.
func (e *ends) end(uid types.UID) (done func()) {
	m := e.of(uid)
	m.Lock()
	return m.Unlock
}

// present returns the task as it is now, if it is still there, and holds its end back until done is called.
func (e *ends) present(ctx context.Context, tasks stored.Tasks, t *v1alpha1.Task) (now *v1alpha1.Task, done func(), err error) {
	m := e.of(t.UID)
	m.RLock()
	now, err = tasks.Get(request.WithNamespace(ctx, t.Namespace), t.Name)
	if apierrors.IsNotFound(err) || err == nil && now.UID != t.UID {
		err = refusal.Deleted(t)
	}
	if err != nil {
		m.RUnlock()
		return nil, nil, err
	}
	return now, m.RUnlock, nil
}

// keep calls store, which stores content of the task, if that is still allowed. Receiving the body may have taken
// long, so the caller's permission is checked again.
func (r *Contents) keep(ctx context.Context, t *v1alpha1.Task, subresource string, store func(context.Context) error) error {
	now, done, err := r.ends.present(ctx, r.o.Tasks, t)
	if err != nil {
		return err
	}
	defer done()
	if r.o.Guard.Held(ctx) {
		if err := r.o.Guard.Object(ctx, resource.Access{Verb: "create", Subresource: subresource}, now); err != nil {
			return err
		}
	}
	if err := r.mayKeep(ctx, now); err != nil {
		return err
	}
	if err = store(ctx); err != nil {
		r.o.Log.NoteLimit(ctx, stored.Stream(now), subresource, v1alpha1.ReasonContentLimitReached, err)
	}
	return err
}

// mayKeep decides whether content of the task may be written. Anyone with permission may while the task runs and its
// stream is open; only controllers may after that.
func (r *Contents) mayKeep(ctx context.Context, t *v1alpha1.Task) error {
	if t.DeletionTimestamp != nil {
		return refusal.Deleted(t)
	}
	head, err := r.o.Log.Head(ctx, stored.Stream(t))
	if err != nil {
		return err
	}
	if !head.Closed && !t.Status.Phase.Terminal() {
		return nil
	}
	ok, err := guard.MayControl(ctx, r.o.Authorizer, t.Namespace)
	switch {
	case err != nil:
		return err
	case ok:
		return nil
	case r.o.Guard.Held(ctx):
		return apierrors.NewForbidden(v1alpha1.Resource("tasks"), t.Name, errors.New("the task of the caller's credential has ended"))
	}
	return refusal.Closed(t)
}
