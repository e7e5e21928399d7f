// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package worker

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"sync"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clocktesting "k8s.io/utils/clock/testing"

	"github.com/platform-ai/platform/pkg/apis/core/v1alpha1"
	"github.com/platform-ai/platform/pkg/event"
	"github.com/platform-ai/platform/test/kit"
)

// errMarked is what the server answers to what begins work of a task that was cancelled.
func errMarked() error {
	e := apierrors.NewForbidden(v1alpha1.Resource("tasks"), "t", errors.New("the task was cancelled and starts nothing more"))
	e.ErrStatus.Details.Causes = []metav1.StatusCause{{Type: v1alpha1.ReasonCancelRequested, Message: "the task was cancelled"}}
	return e
}

// TestCancelledWorkStops: a worker whose event the server refuses because the task was cancelled stops its work at once, still delivers
// what reports the past, and waits for its controller to end it.
func TestCancelledWorkStops(t *testing.T) {
	raw, err := json.Marshal(containerTask(`echo begun; while :; do sleep 0.02; done`))
	if err != nil {
		t.Fatal(err)
	}
	w := newTestWorker(t, func(c *Config) { c.HostCommands, c.Credentials.Task = true, raw })
	w.post = func(context.Context, string, []byte, ...string) error { return nil }
	clk := clocktesting.NewFakeClock(time.Now())
	w.clock = clk
	var mu sync.Mutex
	var stored []v1alpha1.EventType
	w.log.out.send = func(context.Context, []string) error { return nil }
	w.events.out.opening = 0
	w.events.out.send = func(_ context.Context, batch []*v1alpha1.ExecutionEvent) error {
		if slices.ContainsFunc(batch, event.Begins) {
			return w.events.heard(errMarked())
		}
		mu.Lock()
		defer mu.Unlock()
		for _, e := range batch {
			stored = append(stored, e.Type)
		}
		return nil
	}
	ctx, stop := context.WithCancel(t.Context())
	go func() {
		kit.Await(t, "the end of the work", clk.HasWaiters)
		stop() // as its executor does
	}()
	end := w.run(ctx)
	if end.Termination.Reason != v1alpha1.ReasonCancelled {
		t.Errorf("the worker ended with %+v", end.Termination)
	}
	mu.Lock()
	defer mu.Unlock()
	if !slices.Contains(stored, v1alpha1.EventWorkerFailed) {
		t.Errorf("the server has %v", stored)
	}
}

// TestCancelledRequest: the refusal of the start of a model request is heard, and the request is not sent.
func TestCancelledRequest(t *testing.T) {
	w, heard := newTestWorker(t, nil), false
	w.events.out.send = func(context.Context, []*v1alpha1.ExecutionEvent) error { return nil }
	w.events.out.start(t.Context())
	w.events.cancelled = func() { heard = true }
	w.events.now = func(context.Context, *v1alpha1.ExecutionEvent) error { return w.events.heard(errMarked()) }
	err := w.events.Begin(t.Context(), event.New(v1alpha1.EventModelRequestStarted, v1alpha1.SeverityInfo, "", "x", nil))
	w.events.out.close(time.Minute)
	if err == nil || !heard {
		t.Errorf("%v, heard %v", err, heard)
	}
}
