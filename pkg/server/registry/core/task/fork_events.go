// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package task

import (
	"context"
	"errors"
	"fmt"
	"time"

	"k8s.io/client-go/util/workqueue"
	"k8s.io/klog/v2"
	"k8s.io/utils/clock"

	"github.com/platform-ai/platform/pkg/apis/core/v1alpha1"
	"github.com/platform-ai/platform/pkg/event"
	"github.com/platform-ai/platform/pkg/storage/eventlog"
)

// tellAgain is the time between two tries to store the events of a fork.
const tellAgain = 5 * time.Second

// forkTold is what is to be said about one fork.
type forkTold struct {
	source, made *v1alpha1.Task
	seq          int64
}

// untold holds the forks whose events could not be stored, as on a full disk, and stores them once that is possible. If the server
// stops before that, its log has the names of both tasks.
type untold struct {
	log   *eventlog.Log
	queue workqueue.TypedDelayingInterface[*forkTold]
}

func newUntold(log *eventlog.Log, c clock.WithTicker) *untold {
	return &untold{log, workqueue.NewTypedDelayingQueueWithConfig(workqueue.TypedDelayingQueueConfig[*forkTold]{Clock: c})}
}

// tell appends the events of a fork to both streams, now or later: the fork exists, whether or not it can be said.
func (u *untold) tell(ctx context.Context, f *forkTold) {
	err := u.append(context.WithoutCancel(ctx), f) // the caller may disconnect; the events must still be stored
	if err != nil {
		klog.FromContext(ctx).Error(err, "Events of a fork are not stored yet; the server tries again", "source", klog.KObj(f.source), "fork", klog.KObj(f.made))
		u.queue.AddAfter(f, tellAgain)
	}
}

// append appends the events. It may be repeated.
func (u *untold) append(ctx context.Context, f *forkTold) error {
	events := func(types ...v1alpha1.EventType) []*v1alpha1.ExecutionEvent {
		var out []*v1alpha1.ExecutionEvent
		for _, typ := range types {
			out = append(out, forkEvent(typ, f.source, f.made, f.seq))
		}
		return out
	}
	var errs []error
	for _, a := range []struct {
		to     *v1alpha1.Task
		events []*v1alpha1.ExecutionEvent
	}{
		{f.source, events(v1alpha1.EventTaskForkRequested, v1alpha1.EventTaskForkCreated)},
		{f.made, events(v1alpha1.EventTaskForkCreated)},
	} {
		_, err := u.log.Append(ctx, stream(a.to), a.events)
		if !errors.Is(err, eventlog.ErrDeleted) { // a stream that is gone needs no events
			errs = append(errs, err)
		}
	}
	return errors.Join(errs...)
}

// retry stores the events of forks that could not be stored, until ctx ends.
func (u *untold) retry(ctx context.Context) {
	defer context.AfterFunc(ctx, u.queue.ShutDown)()
	for {
		f, down := u.queue.Get()
		if down {
			return
		}
		switch err := u.append(ctx, f); {
		case err == nil:
			klog.FromContext(ctx).Info("Events of a fork are stored now", "source", klog.KObj(f.source), "fork", klog.KObj(f.made))
		case ctx.Err() == nil:
			u.queue.AddAfter(f, tellAgain)
		}
		u.queue.Done(f)
	}
}

func forkEvent(typ v1alpha1.EventType, source, made *v1alpha1.Task, seq int64) *v1alpha1.ExecutionEvent {
	words := map[v1alpha1.EventType]string{v1alpha1.EventTaskForkRequested: "fork %s after event %d was requested", v1alpha1.EventTaskForkCreated: "fork %s after event %d was created"}
	content := map[string]any{
		"sourceTask": source.Name, "sourceTaskUID": source.UID, "sourceSeq": seq,
		"agent": made.Annotations[v1alpha1.AnnotationForkAgent], "newTask": made.Name, "newTaskUID": made.UID, "requestedBy": made.Annotations[v1alpha1.AnnotationRequestedBy],
	}
	return event.New(typ, v1alpha1.SeverityInfo, "fork/"+string(made.UID)+"/"+string(typ), fmt.Sprintf(words[typ], made.Name, seq), content)
}
