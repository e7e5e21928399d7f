// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package resource

import (
	"context"
	"fmt"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/internalversion"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
)

// Content is a separate store of objects' content, keyed by their UID.
type Content interface {
	Owners(ctx context.Context, f func(types.UID) error) error
	Delete(ctx context.Context, uid types.UID) error
}

// Lister lists objects in pages.
type Lister interface {
	List(ctx context.Context, opts *internalversion.ListOptions) (runtime.Object, error)
}

// listPage is the number of objects read at a time.
const listPage = 500

// Sweep removes the content of objects that no longer exist and returns for how many objects it did so. Such content
// remains if a crash occurs after an object is removed and before its content is. Sweep first collects the owners of
// content and then lists the objects. Content is only ever written for an object that exists, and a UID is never used
// again, so an owner that is not in the list is an orphan. The UIDs in known are taken to exist.
func Sweep(ctx context.Context, c Content, known map[types.UID]bool, objects Lister) (removed int, err error) {
	orphans := map[types.UID]bool{}
	err = c.Owners(ctx, func(uid types.UID) error {
		if !known[uid] {
			orphans[uid] = true
		}
		return nil
	})
	if err != nil || len(orphans) == 0 {
		return 0, err
	}
	err = EachObject(ctx, objects, &internalversion.ListOptions{}, func(o metav1.Object) { delete(orphans, o.GetUID()) })
	if err != nil {
		return 0, err
	}
	for uid := range orphans {
		if err := c.Delete(ctx, uid); err != nil {
			return removed, err
		}
		removed++
	}
	return removed, nil
}

// EachObject calls f with each object of a list, which is read in pages.
func EachObject(ctx context.Context, objects Lister, opts *internalversion.ListOptions, f func(metav1.Object)) error {
	for opts.Limit = listPage; ; {
		list, err := objects.List(ctx, opts)
		if err != nil {
			return err
		}
		err = meta.EachListItem(list, func(item runtime.Object) error {
			o, err := meta.Accessor(item)
			if err == nil {
				f(o)
			}
			return err
		})
		if err != nil {
			return fmt.Errorf("list: %w", err)
		}
		m, err := meta.ListAccessor(list)
		if err != nil {
			return fmt.Errorf("list: %w", err)
		}
		if m.GetContinue() == "" {
			return nil
		}
		opts.Continue = m.GetContinue()
	}
}
