// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package resource

import (
	"context"
	"errors"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metainternalversion "k8s.io/apimachinery/pkg/apis/meta/internalversion"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/apiserver/pkg/endpoints/request"
	"k8s.io/apiserver/pkg/registry/rest"
)

// Guard restricts some callers to less than their roles allow. A role covers all objects of a namespace, whereas a
// credential may be for only a few of them. This package asks the guard for every verb and subresource, after
// authorization and before anything is read or done.
type Guard[T Object] interface {
	// Held reports whether the guard restricts the caller of the request. For all other callers no other method is
	// called.
	Held(ctx context.Context) bool
	// Object decides on a request about one object: the stored one or, for a create, the new one. Errors are API
	// errors.
	Object(ctx context.Context, a Access, obj T) error
	// Collection decides on list, watch and deletecollection. The func it returns reports whether the caller may see
	// an object; a watch calls it for each event. Errors are API errors.
	Collection(ctx context.Context, a Access, opts *metainternalversion.ListOptions) (sees func(T) bool, err error)
}

// CloseTo makes g the guard if the definition neither has one nor is Unguarded. Call it before Storage.
func (d *Definition[T]) CloseTo(g Guard[Object]) {
	if d.Guard == nil && !d.Unguarded {
		d.Guard = ofAny[T]{g}
	}
}

// ofAny is a guard that decides about objects of any kind.
type ofAny[T Object] struct{ Guard[Object] }

// Object decides on a request about one object.
func (g ofAny[T]) Object(ctx context.Context, a Access, obj T) error {
	return g.Guard.Object(ctx, a, obj)
}

// Collection decides on list, watch and deletecollection.
func (g ofAny[T]) Collection(ctx context.Context, a Access, opts *metainternalversion.ListOptions) (func(T) bool, error) {
	sees, err := g.Guard.Collection(ctx, a, opts)
	if sees == nil || err != nil {
		return nil, err
	}
	return func(obj T) bool { return sees(obj) }, nil
}

// Access is what a request wants to do.
type Access struct {
	// Verb is get, list, watch, create, update (also for a patch), delete or deletecollection.
	Verb string
	// Subresource is empty for the object itself.
	Subresource string
}

// held reports whether the definition has a guard that restricts the caller.
func (d *Definition[T]) held(ctx context.Context) bool { return d.Guard != nil && d.Guard.Held(ctx) }

// allowed asks the guard about an object.
func (d *Definition[T]) allowed(ctx context.Context, verb, subresource string, obj runtime.Object) error {
	if !d.held(ctx) {
		return nil
	}
	o, ok := obj.(T)
	if !ok {
		return apierrors.NewInternalError(fmt.Errorf("guard of %s: %T", d.Resource.Resource, obj))
	}
	return d.Guard.Object(ctx, Access{verb, subresource}, o)
}

// allowedStored asks the guard about the object that is stored under a name, before the request is carried out.
func (d *Definition[T]) allowedStored(ctx context.Context, verb, subresource, name string, stored rest.Getter) error {
	if !d.held(ctx) {
		return nil
	}
	obj, err := stored.Get(ctx, name, &metav1.GetOptions{})
	if err != nil {
		return err
	}
	return d.allowed(ctx, verb, subresource, obj)
}

// sees asks the guard about a collection. The func is nil if the caller sees every object.
func (d *Definition[T]) sees(ctx context.Context, verb string, opts *metainternalversion.ListOptions) (func(runtime.Object) bool, error) {
	if !d.held(ctx) {
		return nil, nil
	}
	if opts == nil {
		opts = &metainternalversion.ListOptions{}
	}
	sees, err := d.Guard.Collection(ctx, Access{Verb: verb}, opts)
	if err != nil {
		return nil, err
	}
	return func(obj runtime.Object) bool {
		if shared, is := obj.(runtime.CacheableObject); is { // a watch may wrap its objects to share their encoding
			obj = shared.GetObject()
		}
		o, ok := obj.(T)
		return ok && sees != nil && sees(o)
	}, nil
}

// list calls do and keeps only the objects that the caller may see. The result looks like that of a selector, except
// that the number of remaining items is removed: it would also count objects that the caller may not see.
func (d *Definition[T]) list(ctx context.Context, opts *metainternalversion.ListOptions, do func(context.Context, *metainternalversion.ListOptions) (runtime.Object, error)) (runtime.Object, error) {
	sees, err := d.sees(ctx, "list", opts)
	if err != nil {
		return nil, err
	}
	list, err := do(ctx, opts)
	if sees == nil || err != nil {
		return list, err
	}
	items, err := meta.ExtractList(list)
	if err != nil {
		return nil, apierrors.NewInternalError(err)
	}
	kept := items[:0]
	for _, item := range items {
		if sees(item) {
			kept = append(kept, item)
		}
	}
	if err := meta.SetList(list, kept); err != nil {
		return nil, apierrors.NewInternalError(err)
	}
	if m, err := meta.ListAccessor(list); err == nil {
		m.SetRemainingItemCount(nil)
	}
	return list, nil
}

// watch calls do and keeps only the events of objects that the caller may see.
func (d *Definition[T]) watch(ctx context.Context, opts *metainternalversion.ListOptions, do func(context.Context, *metainternalversion.ListOptions) (watch.Interface, error)) (watch.Interface, error) {
	sees, err := d.sees(ctx, "watch", opts)
	if err != nil {
		return nil, err
	}
	w, err := do(ctx, opts)
	if sees == nil || err != nil {
		return w, err
	}
	return watch.Filter(w, func(e watch.Event) (watch.Event, bool) {
		return e, e.Type == watch.Bookmark || e.Type == watch.Error || sees(e.Object)
	}), nil
}

// onlySeen refuses to delete objects that the caller may not see.
func (d *Definition[T]) onlySeen(ctx context.Context, opts *metainternalversion.ListOptions, admit rest.ValidateObjectFunc) (rest.ValidateObjectFunc, error) {
	sees, err := d.sees(ctx, "deletecollection", opts)
	if sees == nil || err != nil {
		return admit, err
	}
	return func(ctx context.Context, obj runtime.Object) error {
		if !sees(obj) {
			return apierrors.NewForbidden(d.Resource.GroupResource(), "", errors.New("the caller's credential is not for all of the collection"))
		}
		if admit == nil {
			return nil
		}
		return admit(ctx, obj)
	}, nil
}

// connectVerb returns the verb that a connected request was authorized as.
func connectVerb(ctx context.Context) string {
	info, ok := request.RequestInfoFrom(ctx)
	if !ok {
		return ""
	}
	return info.Verb
}
