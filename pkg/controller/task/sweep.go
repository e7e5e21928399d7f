// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package task

import (
	"context"
	"errors"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/klog/v2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/platform-ai/platform/pkg/apis/core/v1alpha1"
	"github.com/platform-ai/platform/pkg/controller/executor"
)

// sweeper ends and removes, once at the start, runs whose tasks are gone without the controller
// having noticed: their finalizer was removed by somebody else, or the store was restored to an
// earlier state.
type sweeper struct {
	executor executor.Executor
	tasks    client.Reader
}

// Start sweeps once. An error is logged: it must not keep the controller from working.
func (s sweeper) Start(ctx context.Context) error {
	if err := s.sweep(ctx); err != nil {
		klog.FromContext(ctx).Error(err, "Cannot remove runs of tasks that are gone")
	}
	return nil
}

func (s sweeper) sweep(ctx context.Context) error {
	refs, err := s.executor.List(ctx)
	if err != nil {
		return fmt.Errorf("list runs: %w", err)
	}
	orphans := map[executor.Ref]bool{}
	for _, ref := range refs {
		if orphans[ref], err = s.gone(ctx, ref); err != nil {
			return err
		}
	}
	// List again, and act only on runs that are in both lists. If another store is served by now, the second list has
	// its runs, none of which was looked up.
	if refs, err = s.executor.List(ctx); err != nil {
		return fmt.Errorf("list runs: %w", err)
	}
	var errs []error
	for _, ref := range refs {
		if !orphans[ref] {
			continue
		}
		err = s.executor.Remove(ctx, ref.UID)
		if errors.Is(err, executor.ErrRunning) {
			err = s.executor.Stop(ctx, ref) // its folder is removed at the next start
		}
		errs = append(errs, err)
	}
	return errors.Join(errs...)
}

func (s sweeper) gone(ctx context.Context, ref executor.Ref) (bool, error) {
	var t v1alpha1.Task
	err := s.tasks.Get(ctx, types.NamespacedName{Namespace: ref.Namespace, Name: ref.Name}, &t)
	if apierrors.IsNotFound(err) {
		return true, nil
	}
	if err != nil {
		return false, fmt.Errorf("task of run: %w", err)
	}
	return t.UID != ref.UID, nil
}
