// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

// Package ledger stores what package usage defines: observations of model use, the tasks that contributed and links to
// pull requests.
//
//	ledger.go     opening, time, and requests of chats and of the vendors' APIs
//	settle.go     the ends of these requests, many in one commit
//	keys.go       the keys of the rows
//	record.go     the values of the rows
//	fold.go       observations of workers, written in the commits of their events
//	counter.go    cumulative counters that agents report
//	tasks.go      tasks, written in the commits of their objects
//	link.go       links to pull requests, and which of them are to be looked at again
//	join.go       the index of what belongs together
//	view.go       reading as of a time
//	catch.go      events of a store that is older than the ledger
//	retention.go  removing whole cohorts
//
// Records are written with what causes them. What workers report comes from their events (an eventlog.Projection), and tasks from their
// objects (an object.Index), each in the same commit. The server's own requests, for chats and the vendors' APIs, are recorded by
// Start, which is durable before the request is sent, and End. A start without an end is a gap after a restart.
//
// A row by its ID leads to each observation, and one by each join to each task; a store of a version without these rows gets them in
// the background (join.go). Until they are complete, readers read all records of a namespace.
//
// All rows are written on the commit leader, in the order of commits. Each state of a record is a row of its own, under
// the time at which it was recorded. These times strictly increase from commit to commit, even if the clock is set back or the
// server starts again, so the state of the ledger at a time never changes afterwards.
package ledger

import (
	"context"
	"crypto/rand"
	"encoding/binary"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"

	"github.com/platform-ai/platform/pkg/storage/engine"
	"github.com/platform-ai/platform/pkg/usage"
)

// Ledger is the ledger of an engine. All methods may be called concurrently unless they say otherwise.
type Ledger struct {
	engine engine.Engine
	clock  clock.WithDelayedExecution
	uid    atomic.Pointer[func(namespace string) string]

	endings endings
	indexed atomic.Bool // the index of joins is complete
	// linking is held for changing a link, by its ID.
	linking [64]sync.Mutex
	// views is held by open views for reading, and for writing by the removal of records.
	views sync.RWMutex

	// What follows is used by the commit leader alone, and before Open returns.

	last     int64 // the newest time that was given or promised, in Unix nanoseconds
	tasks    map[types.UID]*taskState
	sessions map[string]usage.Counts // totals of session counters by their key
}

// Open opens the ledger of an engine, and ends the requests that an earlier process left open: their final usage is
// missing, because only that process could have recorded it.
func Open(e engine.Engine, c clock.WithDelayedExecution) (*Ledger, error) {
	l := &Ledger{engine: e, clock: c, tasks: map[types.UID]*taskState{}, sessions: map[string]usage.Counts{}}
	v, ok, err := e.Get(timeKey)
	if err != nil {
		return nil, fmt.Errorf("open ledger: %w", err)
	}
	if ok && len(v) == 8 {
		l.last = int64(binary.BigEndian.Uint64(v))
	}
	indexed, err := isIndexed(e)
	if err != nil {
		return nil, fmt.Errorf("open ledger: %w", err)
	}
	l.indexed.Store(indexed)
	if err := l.abandon(); err != nil {
		return nil, fmt.Errorf("open ledger: %w", err)
	}
	return l, nil
}

// SetNamespaceUID sets what returns the UID of a namespace, or an empty string if it is not known. It is called while
// others wait, so it must not block.
func (l *Ledger) SetNamespaceUID(f func(namespace string) string) { l.uid.Store(&f) }

func (l *Ledger) namespaceUID(namespace string) string {
	if f := l.uid.Load(); f != nil {
		return (*f)(namespace)
	}
	return ""
}

// now returns the time of a change and records it in the batch. It runs on the commit leader.
func (l *Ledger) now(b engine.Batch) (time.Time, error) { return l.stamp(b, l.clock.Now()) }

// stamp is now for a change that was made at a time.
func (l *Ledger) stamp(b engine.Batch, at time.Time) (time.Time, error) {
	l.last = max(at.UnixNano(), l.last+1)
	v := binary.BigEndian.AppendUint64(nil, uint64(l.last))
	err := b.Set(timeKey, v)
	if l.indexed.Load() {
		err = errors.Join(err, b.Set(indexedKey, indexedAt(v)))
	}
	return time.Unix(0, l.last).UTC(), err
}

// change is a Txn of the ledger alone.
type change struct {
	need  engine.Need
	write func(b engine.Batch) error
}

// Sequence writes the change.
func (c *change) Sequence(b engine.Batch) error { return c.write(b) }

// Publish has nothing to show: readers read rows.
func (*change) Publish() {}

// Need returns what the change was made with.
func (c *change) Need() engine.Need { return c.need }

func (l *Ledger) commit(need engine.Need, write func(b engine.Batch) error) error {
	return l.engine.Commit(&change{need, write})
}

// Call is an open request of a chat or of a vendor's API.
type Call struct {
	ledger *Ledger
	o      usage.Observation
}

// Start records that a request is about to be sent. The request must not be sent before Start returns. The caller sets
// Namespace, SessionName, AttemptID, CounterID, Provider, Model and User.
func (l *Ledger) Start(_ context.Context, o usage.Observation) (*Call, error) {
	id := make([]byte, idLen)
	_, _ = rand.Read(id) // it never fails
	o.ID, o.Scope, o.Source, o.Status = idText(id), usage.ScopeCall, usage.SourceProvider, usage.StatusStarted
	o.NamespaceUID = l.namespaceUID(o.Namespace)
	c := &Call{l, o}
	var ends *batch
	err := l.commit(engine.Upkeep, func(b engine.Batch) error {
		var err error
		if ends, err = l.endings.record(l, b, nil); err != nil {
			return err
		}
		at, err := l.now(b)
		if err != nil {
			return err
		}
		c.o.StartedAt, c.o.ObservedAt = at, at
		row := encodeObservation(&c.o)
		return errors.Join(putRow(b, &c.o, row), b.Set(openKey(c.o.ID), row)) // the whole record, so that ending it needs no other row
	})
	ends.finish(err)
	if err != nil {
		return nil, fmt.Errorf("record the start of a model request: %w", err)
	}
	return c, nil
}

// Of returns the namespace of a request, the ID of its record, and when it began.
func (c *Call) Of() (namespace, id string, at time.Time) { return c.o.Namespace, c.o.ID, c.o.StartedAt }

// End records how the request ended. After an error the request stays open until the next start of the server, which records a gap.
func (c *Call) End(out usage.Outcome, status usage.Status) error {
	o := c.o
	o.Status = status
	o.Settle(out)
	err := c.ledger.commit(engine.Free, func(b engine.Batch) error { return c.ledger.end(b, &o, c.ledger.clock.Now()) })
	if err != nil {
		return fmt.Errorf("record the end of a model request: %w", err)
	}
	return nil
}

// abandon ends the requests that are open. It runs before the ledger is used.
func (l *Ledger) abandon() error {
	it, err := l.engine.NewIter(openPrefix, after(openPrefix))
	if err != nil {
		return err
	}
	var open []*usage.Observation
	for ok := it.First(); ok; ok = it.Next() {
		o, err := l.opened(it.Value())
		if err != nil {
			return errors.Join(err, it.Close())
		}
		if o != nil {
			open = append(open, o)
		}
	}
	if err := errors.Join(it.Error(), it.Close()); err != nil || len(open) == 0 {
		return err
	}
	return l.commit(engine.Free, func(b engine.Batch) error {
		at, err := l.now(b)
		for _, o := range open {
			o.Gap, o.ObservedAt = usage.GapFinalUsage, at
			err = errors.Join(err, putObservation(b, o), b.Delete(openKey(o.ID)))
		}
		return err
	})
}
