// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package resource

import (
	"context"
	"fmt"

	"k8s.io/apimachinery/pkg/runtime"

	"github.com/platform-ai/platform/pkg/storage/object"
)

// Each calls f with each stored object of the request's namespace, in the order of names, as of one revision, which it
// returns; 0 is the newest. It is for the server itself: no guard is asked. The objects are shared, so f must not change
// them.
func (r *keptREST[T]) Each(ctx context.Context, revision uint64, f func(T) error) (uint64, error) {
	return object.Each(ctx, r.Storage.Storage, r.KeyRootFunc(ctx), revision, func(obj runtime.Object) error {
		o, ok := obj.(T)
		if !ok {
			return fmt.Errorf("stored %T", obj)
		}
		return f(o)
	})
}
