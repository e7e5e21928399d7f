// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package resource

import (
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
)

// shown is Kept.Show; nil changes nothing.
type shown[T Object] func(T)

// one returns a completed copy, because stored objects may be shared.
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
