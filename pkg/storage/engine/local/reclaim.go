// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package local

import (
	"bytes"
	"context"
	"slices"
	"sync"
	"time"
)

// reclaimLeast is how many deleted bytes may stay on a disk that is not full. Compacting less costs more than it returns.
const reclaimLeast = 4 << 20

// reclaimer returns the space of deleted ranges. Pebble does so only when it compacts for another reason, which for keys that are
// written in order may never happen.
type reclaimer struct {
	e *Engine
	// ctx ends when the engine is being closed.
	ctx  context.Context //nolint:containedctx // of the engine
	stop context.CancelFunc

	one sync.Mutex // held by one compaction at a time

	mu      sync.Mutex
	ranges  []deletedRange
	pending bool // a run is going to start
}

// deletedRange is a range of keys that was deleted. bytes is about what it still takes on disk.
type deletedRange struct {
	lo, hi []byte
	bytes  uint64
}

func newReclaimer(e *Engine) *reclaimer {
	ctx, stop := context.WithCancel(context.Background()) //nolint:forbidigo // it outlives the context of Open
	return &reclaimer{e: e, ctx: ctx, stop: stop}
}

// Reclaim returns the space of deleted keys from lo to hi, in the background: at once to a full volume, otherwise together with
// what else is deleted meanwhile. Without it, later compactions may return that space, or none.
func (e *Engine) Reclaim(_ context.Context, lo, hi []byte) {
	if e.acquire() != nil {
		return
	}
	defer e.release()
	r := e.reclaimer
	n, err := e.db.EstimateDiskUsage(lo, hi)
	switch {
	case err != nil:
		n = reclaimLeast // unknown
	case n == 0:
		return // it is still in memory, and will not be written
	}
	delay := e.opts.ReclaimAfter
	if e.Full() {
		delay = 0
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.ranges = append(r.ranges, deletedRange{bytes.Clone(lo), bytes.Clone(hi), n})
	if !r.pending || delay == 0 {
		r.pending = true
		time.AfterFunc(delay, r.run)
	}
}

// run compacts what was deleted, unless it is too little.
func (r *reclaimer) run() {
	if r.e.acquire() != nil {
		return
	}
	defer r.e.release()
	r.one.Lock()
	defer r.one.Unlock()
	r.mu.Lock()
	r.pending = false
	var total uint64
	for _, d := range r.ranges {
		total += d.bytes
	}
	if total < reclaimLeast && !r.e.Full() {
		r.mu.Unlock()
		return
	}
	ranges := r.ranges
	r.ranges = nil
	r.mu.Unlock()
	for _, d := range r.joined(ranges) {
		if r.e.failure.Load() != nil || r.ctx.Err() != nil {
			return
		}
		if err := guard(func() error { return r.e.db.Compact(r.ctx, d.lo, d.hi, false) }); err != nil && r.ctx.Err() == nil {
			r.e.log.Info("The space of deleted data is not free yet", "reason", err.Error())
		}
	}
}

// joined joins neighbours if most of what lies between them was deleted, because each compaction writes whole tables.
func (r *reclaimer) joined(ranges []deletedRange) (out []deletedRange) {
	slices.SortFunc(ranges, func(a, b deletedRange) int { return bytes.Compare(a.lo, b.lo) })
	for _, d := range ranges {
		if len(out) > 0 {
			last := &out[len(out)-1]
			hi := last.hi
			if bytes.Compare(d.hi, hi) > 0 {
				hi = d.hi
			}
			span, err := r.e.db.EstimateDiskUsage(last.lo, hi)
			if err == nil && span <= 2*(last.bytes+d.bytes) {
				last.hi, last.bytes = hi, last.bytes+d.bytes
				continue
			}
		}
		out = append(out, d)
	}
	return out
}
