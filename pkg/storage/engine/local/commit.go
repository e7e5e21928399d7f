// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package local

import (
	"encoding/binary"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"sync"

	"github.com/cockroachdb/pebble/v2"

	"github.com/platform-ai/platform/pkg/storage/engine"
)

// pending is a Txn on its way through the pipeline.
type pending struct {
	txn  engine.Txn
	err  error
	last uint64 // highest revision after it was sequenced
	lead bool   // set before wake: lead the next group instead of returning
	wake chan struct{}

	overlapped bool // used only by the goroutine of Commit
}

func (p *pending) overlap() {
	if p.overlapped {
		return
	}
	p.overlapped = true
	if o, ok := p.txn.(engine.Overlapper); ok {
		o.Overlap()
	}
}

var wakePool = sync.Pool{New: func() any { return make(chan struct{}, 1) }}

// Commit runs t through the pipeline. It returns nil when t is durable and published, and Sequence's error
// when t was refused. An engine.ErrFailed means that the disk failed: the outcome is unknown until the
// store is opened again.
func (e *Engine) Commit(t engine.Txn) error {
	if err := e.acquire(); err != nil {
		return err
	}
	defer e.release()
	p := &pending{txn: t, wake: wakePool.Get().(chan struct{})}
	defer wakePool.Put(p.wake)
	e.mu.Lock()
	e.queue = append(e.queue, p)
	if e.leading {
		e.mu.Unlock()
		p.overlap()
		<-p.wake
		if !p.lead {
			return p.err
		}
	} else {
		e.leading = true
		e.mu.Unlock()
	}
	e.lead()
	return p.err
}

// lead commits the queue as one group. The caller's Txn is the first in it.
func (e *Engine) lead() {
	e.mu.Lock()
	queue := e.queue
	e.queue = nil
	e.mu.Unlock()

	start := e.opts.Clock.Now()
	b := &batch{engine: e, b: e.db.NewBatch(), sequencing: true}
	before := e.sequenced
	n, err := e.sequence(b, queue)
	group, rest := queue[:n], queue[n:]
	size := b.Len()
	if err == nil {
		err = e.persist(b, before, group[0])
	}
	if err != nil {
		e.fail(err)
	}
	e.metrics.group(len(group), size, e.opts.Clock.Since(start))
	after, done := e.previous, make(chan struct{})
	e.previous = done
	e.handOver(rest)

	<-after
	// An earlier group may have failed after this one was synced.
	if f := e.failure.Load(); f != nil {
		for _, p := range group {
			p.err = f.err()
		}
	} else {
		e.publish(group)
	}
	close(done)
	for _, p := range group[1:] {
		p.wake <- struct{}{}
	}
	if len(group) == 1 {
		runtime.Gosched() // let a watch that waits for this change run before its writer continues
	}
}

// sequence adds Txns to the batch until it is large enough, and returns how many it took.
func (e *Engine) sequence(b *batch, queue []*pending) (int, error) {
	if f := e.failure.Load(); f != nil {
		return len(queue), f.err()
	}
	for i, p := range queue {
		count, revision := b.b.Count(), e.sequenced
		if p.err = e.space.check(needOf(p.txn)); p.err == nil {
			size := b.Len()
			p.err = p.txn.Sequence(b)
			e.space.spent.Add(int64(b.Len() - size))
		}
		p.last = e.sequenced
		if p.err != nil {
			if b.b.Count() != count || b.err != nil {
				return len(queue), fmt.Errorf("%T wrote before it refused: %w", p.txn, errors.Join(p.err, b.err))
			}
			e.sequenced = revision
		}
		if b.err != nil {
			return len(queue), b.err
		}
		if b.Len() >= e.opts.GroupBytes {
			return i + 1, nil
		}
	}
	return len(queue), nil
}

// persist applies the batch and waits for its sync. own is the leader's Txn.
func (e *Engine) persist(b *batch, before uint64, own *pending) error {
	if e.sequenced != before {
		if err := b.Set(revisionKey, binary.BigEndian.AppendUint64(nil, e.sequenced)); err != nil {
			return err
		}
	}
	if b.b.Empty() {
		return b.b.Close()
	}
	start := e.opts.Clock.Now()
	if err := guard(func() error { return e.db.ApplyNoSyncWait(b.b, pebble.Sync) }); err != nil {
		return err
	}
	own.overlap()
	if err := b.b.SyncWait(); err != nil {
		return err
	}
	e.metrics.syncSeconds.Observe(e.opts.Clock.Since(start).Seconds())
	return b.b.Close()
}

// handOver makes the first waiting writer the leader. It runs after the group's sync: the larger groups
// that form during a sync are more efficient than smaller groups synced concurrently.
func (e *Engine) handOver(rest []*pending) {
	e.mu.Lock()
	if len(rest) > 0 {
		e.queue = append(slices.Clip(rest), e.queue...)
	}
	var next *pending
	if len(e.queue) > 0 {
		next = e.queue[0]
		next.lead = true
	} else {
		e.leading = false
	}
	e.mu.Unlock()
	if next != nil {
		next.wake <- struct{}{}
	}
}

// publish makes a durable group visible. Refused Txns are also answered only afterwards. Otherwise the
// loser of a compare-and-swap would read the old state again and spin.
func (e *Engine) publish(group []*pending) {
	for _, p := range group {
		if p.err != nil {
			continue
		}
		p.txn.Publish()
		if p.last > e.published.Load() {
			e.published.Store(p.last)
		}
	}
}

// Bump advances the revision by n without any other change and returns the new revision.
func (e *Engine) Bump(n uint64) (uint64, error) {
	t := &bump{engine: e, n: n}
	err := e.Commit(t)
	return t.rev, err
}

// Rebase advances the revision by n and makes the new revision the store's Base from the next Open on. n
// must exceed the number of revisions assigned since the store's files were copied. Rebase is for a store
// restored from a backup. A client may have seen changes that the backup lacks, under revisions that would
// otherwise be assigned again. Such a client must not resume from those revisions, and must not mistake new
// changes for the ones it has seen.
func (e *Engine) Rebase(n uint64) (uint64, error) {
	t := &bump{engine: e, n: n, base: true}
	err := e.Commit(t)
	return t.rev, err
}

type bump struct {
	engine *Engine
	n, rev uint64
	base   bool
}

func (t *bump) Sequence(b engine.Batch) error {
	t.engine.sequenced += t.n
	t.rev = t.engine.sequenced
	if t.base {
		return b.Set(baseKey, binary.BigEndian.AppendUint64(nil, t.rev))
	}
	return nil
}

func (t *bump) Publish() {}

// Need returns Free, because a bump adds nothing.
func (t *bump) Need() engine.Need { return engine.Free }
