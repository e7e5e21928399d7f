// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package resource

import (
	"context"
	"fmt"
	"sync/atomic"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metainternalversion "k8s.io/apimachinery/pkg/apis/meta/internalversion"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/endpoints/request"
	"k8s.io/apiserver/pkg/registry/rest"

	"github.com/platform-ai/platform/pkg/storage/engine"
	"github.com/platform-ai/platform/pkg/storage/object"
)

// Stored reads and changes the stored objects of one resource on behalf of the server itself, without asking the guard. It is made
// before the Definition that it belongs to, so that two resources which need each other's objects are both complete when they are
// made. Until the Storage of its Definition is built, it answers with 503. Errors are API errors.
type Stored[T Object] struct {
	resource schema.GroupResource
	bound    atomic.Pointer[bound[T]] // nil until the Storage of the Definition was built
}

// bound is what the Storage of a Definition binds a Stored to.
type bound[T Object] struct {
	parent[T]
	config Config
}

// NewStored returns what is stored of a resource. Set it as Stored of the resource's Definition.
func NewStored[T Object](resource schema.GroupResource) *Stored[T] {
	return &Stored[T]{resource: resource}
}

func (s *Stored[T]) notServed() error {
	return apierrors.NewServiceUnavailable(s.resource.Resource + " are not served yet")
}

// Config returns what the server gave the resource to build its storage.
func (s *Stored[T]) Config() (Config, error) {
	b := s.bound.Load()
	if b == nil {
		return Config{}, s.notServed()
	}
	return b.config, nil
}

// Get reads an object of the context's namespace.
func (s *Stored[T]) Get(ctx context.Context, name string) (T, error) {
	b := s.bound.Load()
	if b == nil || b.get == nil {
		var none T
		return none, s.notServed()
	}
	return b.get(ctx, name)
}

// List reads a page of objects of the context's namespace. It is for kinds that are kept, as are the methods below.
func (s *Stored[T]) List(ctx context.Context, opts *metainternalversion.ListOptions) (runtime.Object, error) {
	b := s.bound.Load()
	if b == nil || b.kept == nil {
		return nil, s.notServed()
	}
	return b.kept.Store.List(ctx, opts)
}

// pageOfSelect is how many objects Select reads at a time.
const pageOfSelect = 500

// Select calls f with each object of a namespace, or of all if it is empty, that a field selector selects. It is for the server itself,
// whoever caused it.
func (s *Stored[T]) Select(ctx context.Context, namespace string, selector fields.Selector, f func(T) error) error {
	ctx = AsServer(ctx, namespace)
	for o := (&metainternalversion.ListOptions{FieldSelector: selector, Limit: pageOfSelect}); ; {
		list, err := s.List(ctx, o)
		if err != nil {
			return err
		}
		if err := meta.EachListItem(list, func(item runtime.Object) error {
			object, ok := item.(T)
			if !ok {
				return fmt.Errorf("list of %s: %T", s.resource.Resource, item)
			}
			return f(object)
		}); err != nil {
			return err
		}
		page, err := meta.ListAccessor(list)
		if err != nil {
			return err
		}
		if o.Continue = page.GetContinue(); o.Continue == "" {
			return nil
		}
	}
}

// Ensure stores an object for the server itself, whoever caused it, or returns the one that is there under its name. It reports whether the
// object is new. With dryRun nothing is stored.
func (s *Stored[T]) Ensure(ctx context.Context, object T, dryRun bool) (stored T, made bool, err error) {
	ctx = AsServer(ctx, object.GetNamespace())
	if stored, err = s.Get(ctx, object.GetName()); !apierrors.IsNotFound(err) {
		return stored, false, err
	}
	served, err := s.AsCaller()
	if err != nil {
		return stored, false, err
	}
	options := &metav1.CreateOptions{}
	if dryRun {
		options.DryRun = []string{metav1.DryRunAll}
	}
	created, err := served.Create(ctx, object, rest.ValidateAllObjectFunc, options)
	if apierrors.IsAlreadyExists(err) {
		stored, err = s.Get(ctx, object.GetName())
		return stored, false, err
	}
	if err != nil {
		return stored, false, err
	}
	stored, ok := created.(T)
	if !ok {
		return stored, false, apierrors.NewInternalError(fmt.Errorf("create of %s: %T", s.resource.Resource, created))
	}
	return stored, true, nil
}

// Remove deletes an object for the server itself, whoever caused it. It is not an error if there is none.
func (s *Stored[T]) Remove(ctx context.Context, object T) error {
	served, err := s.AsCaller()
	if err != nil {
		return err
	}
	options := &metav1.DeleteOptions{Preconditions: metav1.NewUIDPreconditions(string(object.GetUID()))}
	_, _, err = served.Delete(AsServer(ctx, object.GetNamespace()), object.GetName(), rest.ValidateAllObjectFunc, options)
	if apierrors.IsNotFound(err) {
		return nil
	}
	return err
}

// AsServer returns the context of what the server does by itself in a namespace.
func AsServer(ctx context.Context, namespace string) context.Context {
	return request.WithNamespace(request.WithUser(ctx, nil), namespace)
}

// Each calls f with each stored object of the context's namespace, in the order of names, as of one revision, which it returns; 0 is
// the newest. The objects are shared, so f must not change them.
func (s *Stored[T]) Each(ctx context.Context, revision uint64, f func(T) error) (uint64, error) {
	b := s.bound.Load()
	if b == nil || b.kept == nil {
		return 0, s.notServed()
	}
	return b.kept.Each(ctx, revision, f)
}

// Revision returns the current revision of the whole store, which is at least that of every acknowledged write.
func (s *Stored[T]) Revision(ctx context.Context) (uint64, error) {
	b := s.bound.Load()
	if b == nil || b.kept == nil {
		return 0, s.notServed()
	}
	return b.kept.Revision(ctx)
}

// UpdateStored changes an object of the context's namespace: its Status if the resource has a status subresource, otherwise the whole
// object. mutate may run several times, each time on a fresh copy, until no other writer interferes; an error from it ends the
// update.
func (s *Stored[T]) UpdateStored(ctx context.Context, name string, mutate func(T) error) (T, error) {
	b := s.bound.Load()
	if b == nil || b.update == nil {
		var none T
		return none, s.notServed()
	}
	return b.update(ctx, name, mutate)
}

// Due returns the entries of a StateLedger, of all namespaces, that are due: their next attempt, or the end of their lease, is not after
// now. The first ones come first, at most limit. It is for the server itself, and its cost is that of what it returns.
func (s *Stored[T]) Due(ctx context.Context, now time.Time, limit int) ([]T, error) {
	b := s.bound.Load()
	if b == nil || b.due == nil {
		return nil, apierrors.NewServiceUnavailable(s.resource.Resource + " are not served yet, or have no states")
	}
	return b.due(ctx, now, limit)
}

// Stage prepares an update of an object of the context's namespace that is committed together with other changes, as object.Stage
// does: the part is nil if mutate changes nothing.
func (s *Stored[T]) Stage(ctx context.Context, name string, mutate func(T) error) (engine.Part, error) {
	b := s.bound.Load()
	if b == nil || b.kept == nil {
		return nil, s.notServed()
	}
	return b.kept.Stage(ctx, name, mutate)
}

// StageNew prepares a new object of the context's namespace that is committed together with other changes, as object.StageNew does. It is
// for the server itself, and sets what every object has: a UID, the time of its creation and a generation. The rest must be complete and valid.
func (s *Stored[T]) StageNew(ctx context.Context, obj T) (engine.Part, error) {
	b := s.bound.Load()
	if b == nil || b.kept == nil {
		return nil, s.notServed()
	}
	return b.kept.StageNew(ctx, obj)
}

// Scan calls f with the objects of all namespaces whose value of an indexed field is not empty, at least from and below to, in the order of
// values, until it returns false. It reads the newest state, at the cost of what it calls f with, and is for the server itself.
func (s *Stored[T]) Scan(ctx context.Context, field, from, to string, f func(value string, obj T) (more bool, err error)) error {
	b := s.bound.Load()
	if b == nil || b.kept == nil {
		return s.notServed()
	}
	return object.Scan(ctx, b.kept.Storage.Storage, field, from, to, func(value string, obj runtime.Object) (bool, error) {
		o, ok := obj.(T)
		if !ok {
			return false, fmt.Errorf("scan of %s: %T", s.resource.Resource, obj)
		}
		return f(value, o)
	})
}

// Count returns how many objects of all namespaces have a value of an indexed field that is at least from and below to, and at most limit.
// It reads no object. object.Only bounds a single value.
func (s *Stored[T]) Count(field, from, to string, limit int) (int, error) {
	b := s.bound.Load()
	if b == nil || b.kept == nil {
		return 0, s.notServed()
	}
	return object.Count(b.kept.Storage.Storage, field, from, to, limit)
}

// Served is the storage of a kind that is kept, as requests use it.
type Served interface {
	rest.Creater
	rest.GracefulDeleter
	rest.Lister
}

// AsCaller returns the storage whose guard decides what the caller of the request may do.
func (s *Stored[T]) AsCaller() (Served, error) {
	b := s.bound.Load()
	if b == nil || b.kept == nil {
		return nil, s.notServed()
	}
	return b.kept, nil
}

// UpdateAsCaller changes an object of the context's namespace without its Status, if the guard lets the caller of the request do so.
// mutate is as in UpdateStored.
func (s *Stored[T]) UpdateAsCaller(ctx context.Context, name string, mutate func(T) error) error {
	b := s.bound.Load()
	if b == nil || b.kept == nil {
		return s.notServed()
	}
	_, _, err := b.kept.Update(ctx, name, mutated(mutate), rest.ValidateAllObjectFunc, rest.ValidateAllObjectUpdateFunc, false, &metav1.UpdateOptions{})
	return err
}
