// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package task

import (
	"context"
	"errors"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/platform-ai/platform/pkg/apis/core/v1alpha1"
	"github.com/platform-ai/platform/pkg/controller/executor"
	"github.com/platform-ai/platform/pkg/controller/step"
)

// TestCancelledMeanwhile: if the server refuses that an attempt begins, because the task was cancelled after it was read, nothing is
// started and the task does not end here: the next reconcile sees the cancellation. That holds however long the start is tried.
func TestCancelledMeanwhile(t *testing.T) {
	marked := apierrors.NewForbidden(v1alpha1.Resource("tasks"), "t", errors.New("the task was cancelled and starts nothing more"))
	marked.ErrStatus.Details.Causes = []metav1.StatusCause{{Type: v1alpha1.ReasonCancelRequested}}
	l := &eventLog{err: marked}
	e := &runs{err: executor.ErrNotFound, byReference: true}
	s := run{
		now: func() time.Time { return noon().Add(2 * startPatience) }, executor: e, append: untilClosed(l.append), end: l.finish, unsettled: nothingUnsettled,
		resolve: func(context.Context, *v1alpha1.Task) (*resolved, error) { return &resolved{}, nil },
		account: func(context.Context, *v1alpha1.Task) error { return nil },
	}
	tk := task(running)
	outcomeIs(t, closed(e, l.finish, step.Step[*v1alpha1.Task]{Do: s.do}).Do(t.Context(), tk), "wait 50ms")
	if e.started.Task != nil || l.end != nil || tk.Status.Phase != v1alpha1.TaskRunning {
		t.Errorf("started %+v, ended %+v, status %+v", e.started, l.end, tk.Status)
	}
}
