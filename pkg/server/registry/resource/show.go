// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package resource

import (
	"context"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/internalversion"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
)

// answers are Show and Reduce of Kept.
type answers[T Object] struct {
	show   func(T)
	reduce func(context.Context) func(T)
}

// to returns what is done to each object that the caller of a request is answered.
func (a answers[T]) to(ctx context.Context) shown[T] {
	if a.reduce == nil {
		return a.show
	}
	reduce := a.reduce(ctx)
	switch {
	case reduce == nil:
		return a.show
	case a.show == nil:
		return reduce
	}
	return func(obj T) {
		a.show(obj)
		reduce(obj)
	}
}

// selectable refuses to select by fields that the caller does not see: whether an object is in the answer would tell them.
func (a answers[T]) selectable(ctx context.Context, opts *internalversion.ListOptions) error {
	if a.reduce == nil || opts == nil || opts.FieldSelector == nil || a.reduce(ctx) == nil {
		return nil
	}
	for _, r := range opts.FieldSelector.Requirements() {
		if r.Field != "metadata.name" && r.Field != "metadata.namespace" {
			return apierrors.NewBadRequest(fmt.Sprintf("fieldSelector: %s cannot be selected by, because your credential does not show it; use metadata.name", r.Field))
		}
	}
	return nil
}

// shown changes an object that is about to be answered; nil changes nothing.
type shown[T Object] func(T)

// one returns a changed copy, because stored objects may be shared.
func (f shown[T]) one(obj runtime.Object) runtime.Object {
	if shared, is := obj.(runtime.CacheableObject); is && f != nil {
		obj = shared.GetObject()
	}
	o, ok := obj.(T)
	if f == nil || !ok {
		return obj
	}
	o = o.DeepCopyObject().(T)
	f(o)
	return o
}

// written is one for the answer of a write, which is nil if the write failed.
func (f shown[T]) written(obj runtime.Object) runtime.Object {
	if obj == nil {
		return nil
	}
	return f.one(obj)
}

func (f shown[T]) list(list runtime.Object) (runtime.Object, error) {
	if f == nil {
		return list, nil
	}
	items, err := meta.ExtractList(list)
	if err != nil {
		return nil, err
	}
	for i := range items {
		items[i] = f.one(items[i])
	}
	return list, meta.SetList(list, items)
}

func (f shown[T]) watch(w watch.Interface) watch.Interface {
	if f == nil {
		return w
	}
	return watch.Filter(w, func(e watch.Event) (watch.Event, bool) {
		if e.Type != watch.Bookmark && e.Type != watch.Error {
			e.Object = f.one(e.Object)
		}
		return e, true
	})
}
