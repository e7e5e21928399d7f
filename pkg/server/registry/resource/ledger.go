// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package resource

import (
	"context"
	"fmt"

	metainternalversion "k8s.io/apimachinery/pkg/apis/meta/internalversion"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/apiserver/pkg/registry/rest"
	"k8s.io/apiserver/pkg/util/dryrun"
)

// Ledger is the shape of entries that are appended and afterwards only read. All four funcs are required.
type Ledger[T Object] struct {
	// Create validates the entry, assigns its name, stores it and returns it as stored.
	Create func(ctx context.Context, obj T) (T, error)
	// Get returns one entry.
	Get func(ctx context.Context, name string) (T, error)
	// List returns a page as the kind's list type. Selectors in opts have been checked against Definition.Fields.
	List func(ctx context.Context, opts *metainternalversion.ListOptions) (runtime.Object, error)
	// Watch follows appends; its events carry the kind's objects.
	Watch func(ctx context.Context, opts *metainternalversion.ListOptions) (watch.Interface, error)
}

func (s Ledger[T]) storage(_ context.Context, k *kind[T], paths map[string]rest.Storage) (parent[T], error) {
	if s.Create == nil || s.Get == nil || s.List == nil || s.Watch == nil {
		return parent[T]{}, fmt.Errorf("a ledger needs Create, Get, List and Watch")
	}
	if k.newList() == nil {
		return parent[T]{}, fmt.Errorf("scheme has no %sList", k.Kind)
	}
	paths[k.Resource.Resource] = &struct {
		readREST[T]
		watchREST[T]
		createREST[T]
	}{readREST[T]{naming[T]{k}, s.Get, s.List}, watchREST[T]{k, s.Watch}, createREST[T]{k, s.Create, true}}
	return parent[T]{get: s.Get}, nil
}

// View is the shape of objects that are computed on request.
type View[T Object] struct {
	// Get computes one object.
	Get func(ctx context.Context, name string) (T, error)
	// List computes a page as the kind's list type. Selectors in opts have been checked against Definition.Fields.
	List func(ctx context.Context, opts *metainternalversion.ListOptions) (runtime.Object, error)
	// Watch follows changes. If it is nil, watch is not served.
	Watch func(ctx context.Context, opts *metainternalversion.ListOptions) (watch.Interface, error)
}

func (s View[T]) storage(_ context.Context, k *kind[T], paths map[string]rest.Storage) (parent[T], error) {
	if s.Get == nil || s.List == nil {
		return parent[T]{}, fmt.Errorf("a view needs Get and List")
	}
	if k.newList() == nil {
		return parent[T]{}, fmt.Errorf("scheme has no %sList", k.Kind)
	}
	read := readREST[T]{naming[T]{k}, s.Get, s.List}
	if s.Watch == nil {
		paths[k.Resource.Resource] = &read
	} else {
		paths[k.Resource.Resource] = &struct {
			readREST[T]
			watchREST[T]
		}{read, watchREST[T]{k, s.Watch}}
	}
	return parent[T]{get: s.Get}, nil
}

// Action is the shape of a request that is answered and not stored.
type Action[T Object] struct {
	// Create answers the request with obj, usually by filling in its status.
	Create func(ctx context.Context, obj T) (T, error)
}

func (s Action[T]) storage(_ context.Context, k *kind[T], paths map[string]rest.Storage) (parent[T], error) { //nolint:unparam // as of all shapes
	if s.Create == nil {
		return parent[T]{}, fmt.Errorf("an action needs Create")
	}
	if len(k.Subresources) > 0 {
		return parent[T]{}, fmt.Errorf("an action has no subresources")
	}
	paths[k.Resource.Resource] = &struct {
		naming[T]
		createREST[T]
	}{naming[T]{k}, createREST[T]{k, s.Create, false}}
	return parent[T]{}, nil
}

// readREST serves get and list.
type readREST[T Object] struct {
	naming[T]
	get  func(ctx context.Context, name string) (T, error)
	list func(ctx context.Context, opts *metainternalversion.ListOptions) (runtime.Object, error)
}

var (
	_ rest.Getter = &readREST[Object]{}
	_ rest.Lister = &readREST[Object]{}
)

func (r readREST[T]) NewList() runtime.Object { return r.k.newList() }

func (r readREST[T]) Get(ctx context.Context, name string, _ *metav1.GetOptions) (runtime.Object, error) {
	obj, err := r.get(ctx, name)
	if err != nil {
		return nil, r.k.statusError(name, err)
	}
	if err := r.k.allowed(ctx, "get", "", obj); err != nil {
		return nil, err
	}
	return obj, nil
}

func (r readREST[T]) List(ctx context.Context, opts *metainternalversion.ListOptions) (runtime.Object, error) {
	if opts == nil {
		opts = &metainternalversion.ListOptions{}
	}
	list, err := r.k.Definition.list(ctx, opts, r.list)
	if err != nil {
		return nil, r.k.statusError("", err)
	}
	return list, nil
}

func (r readREST[T]) ConvertToTable(ctx context.Context, obj, opts runtime.Object) (*metav1.Table, error) {
	return r.k.table.ConvertToTable(ctx, obj, opts)
}

// watchREST serves watch.
type watchREST[T Object] struct {
	wk    *kind[T]
	watch func(ctx context.Context, opts *metainternalversion.ListOptions) (watch.Interface, error)
}

func (r watchREST[T]) Watch(ctx context.Context, opts *metainternalversion.ListOptions) (watch.Interface, error) {
	if opts == nil {
		opts = &metainternalversion.ListOptions{}
	}
	w, err := r.wk.Definition.watch(ctx, opts, r.watch)
	if err != nil {
		return nil, r.wk.statusError("", err)
	}
	return w, nil
}

// createREST serves create. A dry run of an entry that would be stored ends before create is called.
type createREST[T Object] struct {
	ck     *kind[T]
	create func(ctx context.Context, obj T) (T, error)
	stored bool
}

func (r createREST[T]) Create(ctx context.Context, o runtime.Object, validate rest.ValidateObjectFunc, opts *metav1.CreateOptions) (runtime.Object, error) {
	obj := o.(T)
	if err := r.ck.allowed(ctx, "create", "", obj); err != nil {
		return nil, err
	}
	if validate != nil {
		if err := validate(ctx, obj.DeepCopyObject()); err != nil {
			return nil, err
		}
	}
	if r.stored && opts != nil && dryrun.IsDryRun(opts.DryRun) {
		return obj, nil
	}
	out, err := r.create(ctx, obj)
	if err != nil {
		return nil, r.ck.statusError(obj.GetName(), err)
	}
	return out, nil
}
