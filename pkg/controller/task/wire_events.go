// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package task

import (
	"context"
	"errors"
	"fmt"

	"golang.org/x/sync/errgroup"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/platform-ai/platform/pkg/apis/core/v1alpha1"
	"github.com/platform-ai/platform/pkg/readmodel/trace"
)

// eventAPI reads and appends execution events of tasks.
type eventAPI struct{ *wire }

// append adds events to the task's stream in one commit. Repeated events are recognised by
// their key. If the stream is closed, the error satisfies apierrors.IsConflict.
func (w eventAPI) append(ctx context.Context, t *v1alpha1.Task, events ...v1alpha1.ExecutionEvent) error {
	_, err := w.appendEvents(ctx, t, events...)
	return err
}

func (w eventAPI) appendEvents(ctx context.Context, t *v1alpha1.Task, events ...v1alpha1.ExecutionEvent) ([]v1alpha1.ExecutionEvent, error) {
	var stored v1alpha1.ExecutionEventList
	err := w.group.Post().Namespace(t.Namespace).Resource("tasks").Name(t.Name).SubResource("events").
		Body(&v1alpha1.ExecutionEventList{Items: events}).Do(ctx).Into(&stored)
	if err != nil {
		return nil, fmt.Errorf("append events: %w", err)
	}
	return stored.Items, nil
}

// terminalEvent appends events, of which the last is the terminal one, and returns the event
// that closed the stream. That is an earlier event if the stream was closed before. If there is
// no stream to write to, it returns the proposed event.
func (w eventAPI) terminalEvent(ctx context.Context, t *v1alpha1.Task, events ...v1alpha1.ExecutionEvent) (v1alpha1.ExecutionEvent, error) {
	terminal := events[len(events)-1]
	stored, err := w.appendEvents(ctx, t, events...)
	switch {
	case err == nil && len(stored) == len(events):
		return stored[len(stored)-1], nil
	case err == nil:
		return terminal, fmt.Errorf("append events: %d of %d stored", len(stored), len(events))
	case apierrors.IsConflict(err):
		return w.closedBy(ctx, t)
	case apierrors.IsGone(err), apierrors.IsNotFound(err):
		return terminal, nil
	default:
		return terminal, err
	}
}

// closedBy returns the event that closed the stream.
func (w eventAPI) closedBy(ctx context.Context, t *v1alpha1.Task) (v1alpha1.ExecutionEvent, error) {
	for _, how := range endings {
		var found *v1alpha1.ExecutionEvent
		err := w.eachEvent(ctx, t, how.event, func(e *v1alpha1.ExecutionEvent) { found = e })
		if err != nil {
			return v1alpha1.ExecutionEvent{}, err
		}
		if found != nil {
			return *found, nil
		}
	}
	return v1alpha1.ExecutionEvent{}, errors.New("the event stream is closed but lacks a terminal event")
}

// eventPage is how many events are read at once.
const eventPage = 500

// eachEvent pages through the events of one type of a task, oldest first.
func (w eventAPI) eachEvent(ctx context.Context, t *v1alpha1.Task, typ v1alpha1.EventType, f func(*v1alpha1.ExecutionEvent)) error {
	opts := &client.ListOptions{Namespace: t.Namespace, Limit: eventPage}
	client.MatchingFields{"taskName": t.Name, "type": string(typ)}.ApplyToList(opts)
	for {
		var page v1alpha1.ExecutionEventList
		if err := w.live.List(ctx, &page, opts); err != nil {
			return fmt.Errorf("list %s events: %w", typ, err)
		}
		for i := range page.Items {
			f(&page.Items[i])
		}
		if page.Continue == "" {
			return nil
		}
		opts.Continue = page.Continue
	}
}

// usage sums the model events of a task. Only tasks of type ai have any.
func (w eventAPI) usage(ctx context.Context, t *v1alpha1.Task) (all trace.Usage, err error) {
	if t.Spec.Type == v1alpha1.TaskTypeContainer {
		return all, nil // no model was asked
	}
	types := trace.UsageTypes()
	sums := make([]trace.Usage, len(types))
	lists, ctx := errgroup.WithContext(ctx)
	for i, typ := range types {
		lists.Go(func() error { return w.eachEvent(ctx, t, typ, sums[i].Add) })
	}
	if err := lists.Wait(); err != nil {
		return all, err
	}
	for i := range sums {
		all.Merge(&sums[i])
	}
	return all, nil
}
