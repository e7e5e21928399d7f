// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package task

import (
	"context"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/workqueue"
	"k8s.io/klog/v2"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	"github.com/platform-ai/platform/pkg/apis/core/v1alpha1"
)

const (
	// wallCheck is how often the wall clock is looked at.
	wallCheck = 10 * time.Second
	// wallSlack is how much more or less than wallCheck may pass on it before the clock counts as set.
	wallSlack = 2 * time.Second
)

// wallClock wakes all tasks that have not ended when the wall clock was set, or the machine slept. A reconcile waits on the monotonic
// clock, which notices neither, so what is due by the wall clock, above all the runs of schedules, would come late or be missed.
type wallClock struct {
	clock clock.WithTicker
	list  func(context.Context) ([]types.NamespacedName, error)
}

// source returns the source of these wake-ups.
func (w wallClock) source() source.Source {
	return source.Func(func(ctx context.Context, q workqueue.TypedRateLimitingInterface[reconcile.Request]) error {
		go w.watch(ctx, func(n types.NamespacedName) { q.Add(reconcile.Request{NamespacedName: n}) }) // ends with ctx
		return nil
	})
}

func (w wallClock) watch(ctx context.Context, wake func(types.NamespacedName)) {
	ticker := w.clock.NewTicker(wallCheck)
	defer ticker.Stop()
	for last := w.now(); ; {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C():
		}
		now := w.now()
		passed := now.Sub(last)
		last = now
		if (passed - wallCheck).Abs() <= wallSlack {
			continue
		}
		tasks, err := w.list(ctx)
		if err != nil {
			klog.FromContext(ctx).Error(err, "Tasks cannot be looked at after the clock was set, trying again", "by", passed-wallCheck)
			last = now.Add(-passed) // seen again at the next tick
			continue
		}
		klog.FromContext(ctx).Info("The clock was set, or the machine slept; looking at all tasks again", "by", passed-wallCheck, "tasks", len(tasks))
		for _, t := range tasks {
			wake(t)
		}
	}
}

// now returns the time without its monotonic part.
func (w wallClock) now() time.Time { return w.clock.Now().Round(0) }

// unfinished lists the tasks of the cache that have not ended.
func unfinished(c client.Reader) func(context.Context) ([]types.NamespacedName, error) {
	return func(ctx context.Context) ([]types.NamespacedName, error) {
		var list v1alpha1.TaskList
		if err := c.List(ctx, &list); err != nil {
			return nil, err
		}
		var names []types.NamespacedName
		for i := range list.Items {
			if t := &list.Items[i]; !t.Status.Phase.Terminal() {
				names = append(names, client.ObjectKeyFromObject(t))
			}
		}
		return names, nil
	}
}
