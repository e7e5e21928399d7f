// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package task

import (
	"context"

	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	"github.com/platform-ai/platform/pkg/apis/core/v1alpha1"
)

// finalizer keeps a task until deletion has cleaned up after it.
type finalizer struct {
	add func(context.Context, *v1alpha1.Task) error
}

func (s finalizer) do(ctx context.Context, t *v1alpha1.Task) error {
	switch {
	case controllerutil.ContainsFinalizer(t, v1alpha1.FinalizerCleanup):
		return nil
	case t.Status.Phase == "":
		// It is stored in one commit with the first phase. A server of an earlier version ignores it there; then the next
		// reconcile adds it, which is still before a run is started.
		controllerutil.AddFinalizer(t, v1alpha1.FinalizerCleanup)
		return nil
	case t.Status.Phase.Terminal():
		return nil
	default:
		return s.add(ctx, t)
	}
}
