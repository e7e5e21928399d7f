// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package ledger

import (
	"cmp"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/platform-ai/platform/pkg/storage/engine"
	"github.com/platform-ai/platform/pkg/usage"
)

// endings commits the ends of requests, all that are waiting at a time in one commit. One commit is under way at most, so there
// are fewer of them the busier the server is.
type endings struct {
	mu      sync.Mutex
	waiting *batch // nil if none is waiting
	running *batch // nil if no commit is under way
}

// batch is what one commit records.
type batch struct {
	ends []ending
	done chan struct{} // closed after the commit
}

// ending is the end of a request.
type ending struct {
	o      usage.Observation
	at     time.Time
	failed func(error)
}

// EndSoon is End for callers who do not wait for the disk. It returns at once and calls failed if the end could not be
// recorded. At and Drain wait for it. A crash until then leaves the request open, as if End had not been called.
func (c *Call) EndSoon(counts usage.Counts, status usage.Status, failed func(error)) {
	e := ending{o: c.o, at: c.ledger.clock.Now(), failed: failed}
	e.o.Status = status
	settle(&e.o, counts)
	s := &c.ledger.endings
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.waiting == nil {
		s.waiting = &batch{done: make(chan struct{})}
		if s.running == nil {
			go s.commit(c.ledger) // ends when none is waiting
		}
	}
	s.waiting.ends = append(s.waiting.ends, e)
}

// Drain waits until the ends of requests that were reported before are recorded. It must be called before the engine is closed.
func (l *Ledger) Drain() {
	s := &l.endings
	s.mu.Lock()
	b := cmp.Or(s.waiting, s.running)
	s.mu.Unlock()
	if b != nil {
		<-b.done
	}
}

// commit commits until none is waiting.
func (s *endings) commit(l *Ledger) {
	for {
		s.mu.Lock()
		b := s.waiting
		s.waiting, s.running = nil, b
		s.mu.Unlock()
		if b == nil {
			return
		}
		err := l.commit(engine.Free, func(batch engine.Batch) error {
			var err error
			for i := range b.ends {
				err = errors.Join(err, end(l, batch, &b.ends[i].o, b.ends[i].at))
			}
			return err
		})
		if err != nil {
			for _, e := range b.ends {
				e.failed(fmt.Errorf("record the end of a model request: %w", err))
			}
		}
		close(b.done)
	}
}

// end writes the last state of a request that ended at a time. It runs on the commit leader.
func end(l *Ledger, b engine.Batch, o *usage.Observation, at time.Time) error {
	at, err := l.stamp(b, at)
	if err != nil {
		return err
	}
	o.ObservedAt = at
	return errors.Join(putObservation(b, o), b.Delete(openKey(o.ID)))
}
