// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package garbage

import (
	"fmt"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
)

// Metadata returns the metadata of those objects of a list that matter, so that a long list is not held in memory.
func Metadata(list runtime.Object) (runtime.Object, error) {
	of, err := meta.ListAccessor(list)
	if err != nil {
		return nil, fmt.Errorf("list: %w", err)
	}
	out := &metav1.PartialObjectMetadataList{ListMeta: metav1.ListMeta{ResourceVersion: of.GetResourceVersion(), Continue: of.GetContinue()}}
	err = meta.EachListItem(list, func(item runtime.Object) error {
		o, err := meta.Accessor(item)
		if err == nil && Matters(o) {
			out.Items = append(out.Items, *partial(o))
		}
		return err
	})
	return out, err
}

// MetadataEvent returns an event of a watch with the metadata of its object, except the addition of an object that does not matter.
func MetadataEvent(e watch.Event) (watch.Event, bool) {
	o, err := meta.Accessor(e.Object) // all watches share the object, so it is not copied
	if e.Type == watch.Error || err != nil {
		return e, true
	}
	e.Object = partial(o)
	return e, e.Type != watch.Added || Matters(o)
}

func partial(o metav1.Object) *metav1.PartialObjectMetadata {
	return &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{
		Namespace: o.GetNamespace(), Name: o.GetName(), UID: o.GetUID(), ResourceVersion: o.GetResourceVersion(),
		OwnerReferences: o.GetOwnerReferences(), Finalizers: o.GetFinalizers(), DeletionTimestamp: o.GetDeletionTimestamp(),
	}}
}
