// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package task

import (
	"context"
	"errors"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/platform-ai/platform/pkg/apis/core/v1alpha1"
	"github.com/platform-ai/platform/pkg/controller/executor"
	"github.com/platform-ai/platform/pkg/controller/step"
)

// errStreamClosed means that the task already has its terminal event.
var errStreamClosed = errors.New("the event stream is closed")

// cancelCheck is the time until the cache shows a cancellation that the server knows of already.
const cancelCheck = 50 * time.Millisecond

// untilClosed turns the API's conflict, which usually means a lost race for an object, into
// errStreamClosed, which is what it means on tasks/events. If the task was cancelled after it was read, so that nothing of it may
// begin, its next reconcile sees that.
func untilClosed(add appendFunc) appendFunc {
	return func(ctx context.Context, t *v1alpha1.Task, events ...v1alpha1.ExecutionEvent) error {
		err := add(ctx, t, events...)
		switch {
		case apierrors.IsConflict(err):
			return errStreamClosed
		case apierrors.HasStatusCause(err, v1alpha1.ReasonCancelRequested):
			return step.Wait{After: cancelCheck, Reason: "the task was cancelled meanwhile"}
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
