// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package eventlog

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"sync"
	"time"

	"k8s.io/klog/v2"

	"github.com/platform-ai/platform/pkg/storage/engine"
)

// purgeChunk is how many events one background batch removes: some 10 keys of
// 40 bytes each, so 400 KiB.
const purgeChunk = 1000

// purger removes from disk the events that were deleted or trimmed before the history window.
type purger struct {
	*shared
	one     sync.Mutex // one purge at a time; taken before shared.mu
	pressed chan struct{}
	stop    context.CancelFunc
	ending  sync.WaitGroup
}

func newPurger(s *shared) *purger {
	return &purger{shared: s, pressed: make(chan struct{}, 1), stop: func() {}}
}

// start runs purges in the background until close.
func (p *purger) start(ctx context.Context, interval time.Duration) {
	ctx, p.stop = context.WithCancel(ctx)
	ticker := p.opts.Clock.NewTicker(interval)
	p.ending.Go(func() {
		defer ticker.Stop()
		for {
			select {
			case <-ctx.Done():
				return
			case <-ticker.C():
			case <-p.pressed:
			}
			if n, err := p.run(ctx); err != nil && ctx.Err() == nil {
				klog.FromContext(ctx).Error(err, "Purging deleted event streams failed, trying again later", "purged", n)
			}
		}
	})
}

// close ends the purges in the background and waits for them.
func (p *purger) close() {
	p.stop()
	p.ending.Wait()
}

// press starts a purge at once if the disk is full.
func (p *purger) press() {
	if !p.engine.Full() {
		return
	}
	select {
	case p.pressed <- struct{}{}:
	default: // a purge is already pending
	}
}

// run is Log.Purge.
func (p *purger) run(ctx context.Context) (int, error) {
	p.one.Lock()
	defer p.one.Unlock()
	window := p.opts.HistoryWindow
	if p.engine.Full() {
		window = 0 // room counts for more than history
	}
	p.mu.Lock()
	due := p.left.due(p.opts.Clock.Now().Add(-window))
	p.mu.Unlock()
	if len(due) == 0 {
		return 0, nil
	}
	if err := p.raiseFloor(due[len(due)-1].end()); err != nil {
		return 0, fmt.Errorf("raise the floor: %w", err)
	}
	for i, d := range due {
		if err := p.deletion(ctx, d); err != nil {
			return i, fmt.Errorf("purge %s/%s: %w", d.ns, d.task, err)
		}
	}
	return len(due), nil
}

// raiseFloor refuses readers below floor, now and after a restart. It must be called before anything is
// removed.
func (p *purger) raiseFloor(floor uint64) error {
	p.mu.Lock()
	p.floor = max(p.floor, floor)
	floor = p.floor
	p.mu.Unlock()
	b, err := p.engine.NewBatch()
	if err != nil {
		return err
	}
	if err := b.Set([]byte(spaceFloor), binary.BigEndian.AppendUint64(nil, floor)); err != nil {
		b.Discard()
		return err
	}
	return p.engine.Apply(b, engine.Sync)
}

// deletion removes the events of one deletion from disk. The deletion record goes last, because it marks
// the work that is left to do.
func (p *purger) deletion(ctx context.Context, d *deletion) error {
	seen := map[facet]bool{}
	for from := d.first; from <= d.last; from += purgeChunk {
		if err := ctx.Err(); err != nil {
			return err
		}
		if err := p.indexes(d, from, min(from+purgeChunk, d.last+1), seen); err != nil {
			return err
		}
	}
	if err := p.rest(d, seen); err != nil {
		return err
	}
	p.mu.Lock()
	p.left.forget(d)
	if h := p.heads.streams[d.uid]; d.whole && h != nil && h.no == d.no && h.inflight == 0 {
		p.heads.drop(h)
	}
	p.mu.Unlock()
	if d.whole {
		p.idents.Remove(d.no)
	}
	p.engine.Reclaim(ctx, dataKey(d.no, d.first), dataKey(d.no, d.last+1))
	return nil
}

// indexes removes the index entries, of the events from to to-1, that are not under the stream's own
// number, and notes their facets.
func (p *purger) indexes(d *deletion, from, to int64, seen map[facet]bool) error {
	b, err := p.engine.NewBatch()
	if err != nil {
		return err
	}
	it, err := p.engine.NewIter(dataKey(d.no, from), dataKey(d.no, to))
	if err != nil {
		b.Discard()
		return err
	}
	for ok := it.First(); ok; ok = it.Next() {
		data, err := parseData(it.Key(), it.Value())
		if err != nil {
			b.Discard()
			return errors.Join(err, it.Close())
		}
		e, h, err := d.decode(data.seq, data.raw)
		if err != nil {
			b.Discard()
			return errors.Join(err, it.Close())
		}
		seen[h.typ], seen[facetSeverity+h.sev] = true, true
		keys := [][]byte{
			revisionKey(h.rev), namespaceKey(facetAll, d.ns, h.rev),
			namespaceKey(h.typ, d.ns, h.rev), namespaceKey(facetSeverity+h.sev, d.ns, h.rev),
		}
		if d.root != "" {
			keys = append(keys, treeKey(d.ns, d.root, h.rev))
		}
		if h.cursor != 0 {
			keys = append(keys, sessionKey(d.ns, e.SessionName, h.cursor))
		}
		for _, k := range keys {
			if err := b.Delete(k); err != nil {
				b.Discard()
				return errors.Join(err, it.Close())
			}
		}
	}
	if err := it.Close(); err != nil {
		b.Discard()
		return err
	}
	return p.engine.Apply(b, engine.NoSync)
}

// rest removes the keys under the stream's number, and the stream if it was deleted. If the stream
// continues, its de-duplication keys stay, so that each is used only once.
func (p *purger) rest(d *deletion, seen map[facet]bool) error {
	b, err := p.engine.NewBatch()
	if err != nil {
		return err
	}
	if d.whole {
		for _, prefix := range [][]byte{dataPrefix(d.no), facetStream(d.no), dedupPrefix(d.no), markPrefix(d.no), skipPrefix(d.no)} {
			err = errors.Join(err, b.DeleteRange(prefix, after(prefix)))
		}
		err = errors.Join(err, b.Delete(headKey(d.no)), b.Delete(uidKey(d.uid)))
	} else {
		err = errors.Join(err, b.DeleteRange(dataKey(d.no, d.first), dataKey(d.no, d.last+1)), b.DeleteRange(markKey(d.no, d.first), markKey(d.no, d.last+1)))
		for f := range seen {
			err = errors.Join(err, b.DeleteRange(facetKey(d.no, f, d.first), facetKey(d.no, f, d.last+1)))
		}
	}
	err = errors.Join(err, b.Delete(deletedKey(d.rev)))
	if err != nil {
		b.Discard()
		return err
	}
	return p.engine.Apply(b, engine.NoSync)
}
