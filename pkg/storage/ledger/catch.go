// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package ledger

import (
	"context"
	"errors"
	"fmt"

	"github.com/platform-ai/platform/pkg/apis/core/v1alpha1"
	"github.com/platform-ai/platform/pkg/storage/engine"
	"github.com/platform-ai/platform/pkg/storage/eventlog"
	"github.com/platform-ai/platform/pkg/usage"
)

// catchPage is how many events are read at a time.
const catchPage = 500

// errMoved reports that a stream has grown since it was read.
var errMoved = errors.New("the stream has grown")

// Log is the part of the event log that Catch reads.
type Log interface {
	Streams(ctx context.Context, f func(eventlog.Stream) error) error
	TaskPage(ctx context.Context, s eventlog.Stream, after int64, limit int, types []v1alpha1.EventType) (*eventlog.StreamPage, error)
}

// Catch folds the events of streams that were stored before there was a ledger. Their observations are recorded when
// they are folded, and started when their events were stored.
func (l *Ledger) Catch(ctx context.Context, log Log) error {
	return log.Streams(ctx, func(s eventlog.Stream) error {
		if _, ok, err := l.engine.Get(stateKey(string(s.UID))); err != nil || ok {
			return err
		}
		for {
			err := l.catchStream(ctx, log, s)
			if errors.Is(err, eventlog.ErrDeleted) {
				return nil
			}
			if !errors.Is(err, errMoved) {
				return err
			}
			if err := ctx.Err(); err != nil {
				return err
			}
		}
	})
}

func (l *Ledger) catchStream(ctx context.Context, log Log, s eventlog.Stream) error {
	f := &folding{taskState: &taskState{live: true, attempt: 1}, of: s, namespaceUID: l.namespaceUID(s.Namespace), totals: map[string]usage.Counts{}}
	upto := int64(0)
	for {
		page, err := log.TaskPage(ctx, s, upto, catchPage, foldedTypes())
		if err != nil {
			return fmt.Errorf("usage of %s: %w", s, err)
		}
		for _, e := range page.Events {
			f.add(e, e.Seq, e.CreatedAt.UTC())
		}
		if upto = max(upto, page.Next); upto >= page.Latest {
			break
		}
	}
	f.changed = true
	return l.commit(engine.Upkeep, func(b engine.Batch) error {
		state, err := l.state(s.UID)
		if err != nil || state.live {
			return err
		}
		if state.seen > upto {
			state.seen = 0 // the events before it can be read now
			return errMoved
		}
		at, err := l.now(b)
		if err != nil {
			return err
		}
		l.tasks[s.UID] = f.taskState
		if f.ended {
			delete(l.tasks, s.UID)
		}
		return f.write(b, at)
	})
}
