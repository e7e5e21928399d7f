// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

// Package retention removes old events and recordings of tasks that have ended.
package retention

import (
	"context"
	"errors"
	"time"

	"k8s.io/klog/v2"
	"k8s.io/utils/clock"

	"github.com/platform-ai/platform/pkg/apis/core/v1alpha1"
	"github.com/platform-ai/platform/pkg/storage/eventlog"
	"github.com/platform-ai/platform/pkg/storage/recording"
)

// Policy says how long the events of a task are kept after its end; zero keeps
// them as long as the task. The terminal event and the events after it are
// always kept, so that the end of a task remains visible. Tasks that have not
// ended keep all events.
type Policy struct {
	// Ended applies to every task that has ended.
	Ended time.Duration
	// Failed, if set, applies to failed tasks instead of Ended.
	Failed time.Duration
	// Recordings is how long the recording of a task is kept after its end. It goes with the events at the latest.
	Recordings time.Duration
}

// age returns how long events are kept for a task with this terminal event.
func (r Policy) age(terminal v1alpha1.EventType) time.Duration {
	if terminal == v1alpha1.EventTaskFailed && r.Failed != 0 {
		return r.Failed
	}
	return r.Ended
}

// retentionInterval is the time between two searches for events that are too
// old.
const retentionInterval = time.Hour

// Trimmer applies a Policy. All fields are required.
type Trimmer struct {
	Log        *eventlog.Log
	Recordings *recording.Store
	Clock      clock.Clock
	Policy     Policy
}

// Retain trims events that are too old, immediately and then every hour, until
// ctx ends.
func (r Trimmer) Retain(ctx context.Context) {
	log := klog.FromContext(ctx)
	for ctx.Err() == nil {
		n, err := r.trimEnded(ctx)
		switch {
		case err != nil && ctx.Err() == nil && !errors.Is(err, eventlog.ErrShutdown):
			log.Error(err, "Removing old events failed, trying again later", "tasks", n)
		case n > 0:
			log.Info("Removed old events of ended tasks", "tasks", n)
		}
		timer := r.Clock.NewTimer(retentionInterval)
		select {
		case <-ctx.Done():
		case <-timer.C():
		}
		timer.Stop()
	}
}

// trimEnded trims the streams of tasks that ended too long ago and returns how
// many it trimmed.
func (r Trimmer) trimEnded(ctx context.Context) (int, error) {
	n := 0
	err := r.Log.Streams(ctx, func(s eventlog.Stream) error {
		h, err := r.Log.Head(ctx, s)
		if err != nil || !h.Closed || h.Deleted {
			return err
		}
		trimmed, err := r.trim(ctx, s, h)
		if trimmed {
			n++
		}
		return err
	})
	return n, err
}

// trim removes the events and the recording of a task that has ended, as far as their time is over, and reports whether it removed
// events. It takes the time of the end from the terminal event, so a status that is missing or wrong does not matter.
func (r Trimmer) trim(ctx context.Context, s eventlog.Stream, h eventlog.Head) (bool, error) {
	age := r.Policy.age(h.Terminal)
	events := age != 0 && h.Oldest != h.TerminalSeq
	recorded, err := r.Recordings.Has(s.UID)
	if err != nil || !events && !recorded {
		return false, err
	}
	p, err := r.Log.TaskPage(ctx, s, h.TerminalSeq-1, 1, nil)
	if errors.Is(err, eventlog.ErrDeleted) || err == nil && len(p.Events) == 0 {
		return false, nil // deleted meanwhile
	}
	if err != nil {
		return false, err
	}
	ended := r.Clock.Since(p.Events[0].CreatedAt.Time)
	over := func(age time.Duration) bool { return age != 0 && ended >= age }
	if recorded && (over(r.Policy.Recordings) || over(age)) {
		if err := r.Recordings.Delete(s.UID); err != nil {
			return false, err
		}
	}
	if !events || !over(age) {
		return false, nil
	}
	return true, r.Log.Trim(ctx, s, h.TerminalSeq)
}
