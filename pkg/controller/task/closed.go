// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package task

import (
	"context"
	"errors"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/platform-ai/platform/pkg/apis/core/v1alpha1"
	"github.com/platform-ai/platform/pkg/controller/executor"
	"github.com/platform-ai/platform/pkg/controller/step"
)

// errStreamClosed means that the task already has its terminal event.
var errStreamClosed = errors.New("the event stream is closed")

// untilClosed turns the API's conflict, which usually means a lost race for an object, into
// errStreamClosed, which is what it means on tasks/events.
func untilClosed(add appendFunc) appendFunc {
	return func(ctx context.Context, t *v1alpha1.Task, events ...v1alpha1.ExecutionEvent) error {
		err := add(ctx, t, events...)
		if apierrors.IsConflict(err) {
			return errStreamClosed
		}
		return err
	}
}

// closed lets the event log decide. A task whose stream is closed but which has no terminal
// phase was left by a crash between the two writes. It is over, whatever the step wanted to do.
func closed(runs executor.Executor, end endFunc, s step.Step[*v1alpha1.Task]) step.Step[*v1alpha1.Task] {
	return step.Step[*v1alpha1.Task]{Name: s.Name, Do: func(ctx context.Context, t *v1alpha1.Task) error {
		err := s.Do(ctx, t)
		if !errors.Is(err, errStreamClosed) {
			return err
		}
		_, over, err := halt(ctx, runs, t)
		if err != nil {
			return err
		}
		if !over {
			return step.Wait{After: stopCheck, Reason: "the run of a finished task is being stopped"}
		}
		if err := end(ctx, t, outcome{phase: v1alpha1.TaskFailed}); err != nil {
			return err
		}
		return step.ErrDone
	}}
}
