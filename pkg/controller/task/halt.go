// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package task

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/platform-ai/platform/pkg/apis/core/v1alpha1"
	"github.com/platform-ai/platform/pkg/controller/executor"
)

// stopCheck is how often a run that was asked to stop is checked, in case the notification of
// its end is lost.
const stopCheck = 5 * time.Second

// halt stops the current run of a task. If over is true and the error is nil, the run has
// ended; state is its last state, if it had one.
func halt(ctx context.Context, e executor.Executor, t *v1alpha1.Task) (state executor.State, over bool, err error) {
	if t.Status.Attempts == 0 {
		return state, true, nil
	}
	state, err = e.State(ctx, runRef(t))
	if errors.Is(err, executor.ErrNotFound) {
		return state, true, nil
	}
	if err != nil {
		return state, false, fmt.Errorf("run: %w", err)
	}
	if state.Phase != executor.Running {
		return state, true, nil
	}
	if err := e.Stop(ctx, runRef(t)); err != nil {
		return state, false, fmt.Errorf("stop run: %w", err)
	}
	return state, false, nil
}
