// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package ledger

import (
	"errors"
	"fmt"
	"sync"
	"time"

	"k8s.io/utils/clock"

	"github.com/platform-ai/platform/pkg/storage/engine"
	"github.com/platform-ai/platform/pkg/usage"
)

// endDelay is how long the end of a request waits for the start of another one to take it into its commit.
const endDelay = 50 * time.Millisecond

// endings collects the ends of requests that are to be recorded. The next start of a request takes them into its commit, so that
// they cost no sync of their own and no start waits for one; if none comes soon, they are committed alone.
type endings struct {
	mu      sync.Mutex
	waiting *batch // nil if none is waiting
	last    *batch // the newest one that a commit took
}

// batch is what one commit records.
type batch struct {
	ends  []ending
	timer clock.Timer
	done  chan struct{} // closed after the commit
}

// ending is the end of a request.
type ending struct {
	call   *Call
	at     time.Time
	failed func(error)
}

// EndSoon is End for callers who do not wait for the disk. It returns at once and calls failed if the end could not be
// recorded. At and Drain wait for it. A crash until then leaves the request open, as if EndSoon had not been called.
func (c *Call) EndSoon(out usage.Outcome, status usage.Status, failed func(error)) {
	c.o.Status = status
	c.o.Settle(out)
	e := ending{call: c, at: c.ledger.clock.Now(), failed: failed}
	s := &c.ledger.endings
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.waiting == nil {
		b := &batch{done: make(chan struct{})}
		b.timer = c.ledger.clock.AfterFunc(endDelay, func() { go s.commit(c.ledger, b) }) // ends with the commit
		s.waiting = b
	}
	s.waiting.ends = append(s.waiting.ends, e)
}

// Drain waits until the ends of requests that were reported before are recorded. It must be called before the engine is closed.
func (l *Ledger) Drain() {
	s := &l.endings
	s.mu.Lock()
	waiting, last := s.waiting, s.last
	s.mu.Unlock()
	if waiting != nil {
		s.commit(l, waiting)
		last = waiting // all earlier ones are in the same or in earlier commits
	}
	if last != nil {
		<-last.done
	}
}

// commit commits a batch, unless another commit has taken it.
func (s *endings) commit(l *Ledger, b *batch) {
	var took *batch
	err := l.commit(engine.Free, func(to engine.Batch) error {
		var err error
		took, err = s.record(l, to, b)
		return err
	})
	if err != nil && took == nil { // the engine refused
		took = s.take(b)
	}
	took.finish(err)
}

// record writes the ends that wait, if there are any, or only those of a batch. It runs on the commit leader. Its caller calls
// finish with the result of the commit.
func (s *endings) record(l *Ledger, to engine.Batch, only *batch) (*batch, error) {
	b := s.take(only)
	if b == nil {
		return nil, nil //nolint:nilnil // none waits
	}
	var err error
	for _, e := range b.ends {
		err = errors.Join(err, l.end(to, &e.call.o, e.at))
	}
	return b, err
}

// take returns the batch that waits; nil if there is none, or if it is not the only one that may be taken.
func (s *endings) take(only *batch) *batch {
	s.mu.Lock()
	defer s.mu.Unlock()
	b := s.waiting
	if b == nil || only != nil && b != only {
		return nil
	}
	b.timer.Stop()
	s.waiting, s.last = nil, b
	return b
}

// finish reports the result of the commit that took the batch.
func (b *batch) finish(err error) {
	if b == nil {
		return
	}
	if err != nil {
		for _, e := range b.ends {
			e.failed(fmt.Errorf("record the end of a model request: %w", err))
		}
	}
	close(b.done)
}

// end writes the last state of a request that ended at a time. It runs on the commit leader.
func (l *Ledger) end(b engine.Batch, o *usage.Observation, at time.Time) error {
	at, err := l.stamp(b, at)
	if err != nil {
		return err
	}
	o.ObservedAt = at
	return errors.Join(putObservation(b, o), b.Delete(openKey(o.ID)))
}
