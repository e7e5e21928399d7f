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
	if t.Status.Phase.Terminal() || controllerutil.ContainsFinalizer(t, v1alpha1.FinalizerCleanup) {
		return nil
	}
	return s.add(ctx, t)
}
