// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package resource

import (
	"context"
	"fmt"

	metainternalversion "k8s.io/apimachinery/pkg/apis/meta/internalversion"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/apiserver/pkg/registry/rest"
)

// Ledger is the shape of entries that are appended and afterwards only read. All four funcs are required.
type Ledger[T Object] struct {
	// Create validates the entry, assigns its name, stores it and returns it as stored.
	Create func(ctx context.Context, obj T) (T, error)
	// Refused, if set, is called with an entry that the Guard or admission refused, so that Create was not called.
	Refused func(obj T)
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
	}{readREST[T]{naming[T]{k}, s.Get, s.List}, watchREST[T]{k, s.Watch}, createREST[T]{k, s.Create, true, false, s.Refused}}
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
	// Admits says that Create itself asks the validating part of Config.Admission, because it has to complete the
	// object first, or because the answer of admission is the answer.
	Admits bool
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
	}{naming[T]{k}, createREST[T]{k, s.Create, false, s.Admits, nil}}
	return parent[T]{}, nil
}
