// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package fork

import (
	"context"
	"errors"
	"fmt"

	"k8s.io/klog/v2"

	"github.com/platform-ai/platform/pkg/apis/core/v1alpha1"
	"github.com/platform-ai/platform/pkg/event"
	"github.com/platform-ai/platform/pkg/server/registry/core/task/stored"
	"github.com/platform-ai/platform/pkg/storage/eventlog"
)

// told is what is to be said about one fork.
type told struct {
	source, made *v1alpha1.Task
	seq          int64
}

// tell appends the events of a fork to both streams, now or once the disk has room: the fork exists, whether or not it can be
// said. Most sources have ended, so these events may follow a terminal event (event.Late). Hardly any wait, since no fork is made on
// a full disk. If the server stops before they are stored, its log has the names of both tasks.
func (r Forks) tell(ctx context.Context, f *told) {
	ctx = context.WithoutCancel(ctx) // the caller may disconnect; the events must still be stored
	log := klog.FromContext(ctx).WithValues("source", klog.KObj(f.source), "fork", klog.KObj(f.made))
	r.Later.Do(log, "the events of a fork", func() error { return f.append(ctx, r.Log) }, func(err error) {
		log.Error(err, "Events of a fork were not stored")
	})
}

// append appends the events. It may be repeated, because they have de-duplication keys.
func (f *told) append(ctx context.Context, log *eventlog.Log) error {
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
		_, err := log.Append(ctx, stored.Stream(a.to), a.events)
		if !errors.Is(err, eventlog.ErrDeleted) { // a stream that is gone needs no events
			errs = append(errs, err)
		}
	}
	return errors.Join(errs...)
}

func forkEvent(typ v1alpha1.EventType, source, made *v1alpha1.Task, seq int64) *v1alpha1.ExecutionEvent {
	words := map[v1alpha1.EventType]string{v1alpha1.EventTaskForkRequested: "fork %s after event %d was requested", v1alpha1.EventTaskForkCreated: "fork %s after event %d was created"}
	content := map[string]any{
		"sourceTask": source.Name, "sourceTaskUID": source.UID, "sourceSeq": seq,
		"agent": made.Annotations[v1alpha1.AnnotationForkAgent], "newTask": made.Name, "newTaskUID": made.UID, "requestedBy": made.Annotations[v1alpha1.AnnotationRequestedBy],
	}
	return event.New(typ, v1alpha1.SeverityInfo, "fork/"+string(made.UID)+"/"+string(typ), fmt.Sprintf(words[typ], made.Name, seq), content)
}
