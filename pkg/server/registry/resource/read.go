// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package resource

import (
	"context"

	metainternalversion "k8s.io/apimachinery/pkg/apis/meta/internalversion"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/apiserver/pkg/registry/rest"
	"k8s.io/apiserver/pkg/util/dryrun"
)

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
	// admits is set if create asks admission itself.
	admits bool
	// refused is called with an object that never reaches create; it may be nil.
	refused func(obj T)
}

type dryRunKey struct{}

// IsDryRun reports whether the request of an Action is a dry run, which must have no effect but its answer.
func IsDryRun(ctx context.Context) bool {
	dry, _ := ctx.Value(dryRunKey{}).(bool)
	return dry
}

func (r createREST[T]) Create(ctx context.Context, o runtime.Object, validate rest.ValidateObjectFunc, opts *metav1.CreateOptions) (runtime.Object, error) {
	obj := o.(T)
	err := r.ck.allowed(ctx, "create", "", obj)
	if err == nil && validate != nil && !r.admits {
		err = validate(ctx, obj.DeepCopyObject())
	}
	if err != nil {
		if r.refused != nil {
			r.refused(obj)
		}
		return nil, err
	}
	if r.stored && opts != nil && dryrun.IsDryRun(opts.DryRun) {
		return obj, nil
	}
	if opts != nil && dryrun.IsDryRun(opts.DryRun) {
		ctx = context.WithValue(ctx, dryRunKey{}, true)
	}
	out, err := r.create(ctx, obj)
	if err != nil {
		return nil, r.ck.statusError(obj.GetName(), err)
	}
	return out, nil
}
