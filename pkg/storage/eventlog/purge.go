// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package eventlog

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"time"

	"k8s.io/klog/v2"

	"github.com/platform-ai/platform/pkg/storage/engine"
)

// purgeChunk is how many events one background batch removes: some 10 keys of
// 40 bytes each, so 400 KiB.
const purgeChunk = 1000

// purgeEvery runs Purge until the log is closed.
func (l *Log) purgeEvery(ctx context.Context, interval time.Duration) {
	defer l.ending.Done()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	go func() { // ends with this function or Close
		select {
		case <-ctx.Done():
		case <-l.stopping:
			cancel()
		}
	}()
	ticker := l.opts.Clock.NewTicker(interval)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C():
		case <-l.pressed:
		}
		if n, err := l.Purge(ctx); err != nil && ctx.Err() == nil {
			klog.FromContext(ctx).Error(err, "Purging deleted event streams failed, trying again later", "purged", n)
		}
	}
}

// Purge removes from disk the events that left longer than the window of history
// ago, with their streams or before, and raises the floor past their deletion. It
// returns how many deletions it finished. A purge that was cut off goes on where
// it was at the next.
func (l *Log) Purge(ctx context.Context) (int, error) {
	l.purge.Lock()
	defer l.purge.Unlock()
	window := l.opts.HistoryWindow
	if l.engine.Full() {
		window = 0 // room counts for more than history
	}
	due := l.due(l.opts.Clock.Now().Add(-window))
	if len(due) == 0 {
		return 0, nil
	}
	if err := l.raiseFloor(due[len(due)-1].end()); err != nil {
		return 0, fmt.Errorf("raise the floor: %w", err)
	}
	for i, d := range due {
		if err := l.purgeDeletion(ctx, d); err != nil {
			return i, fmt.Errorf("purge %s/%s: %w", d.ns, d.task, err)
		}
	}
	return len(due), nil
}

// due returns the deletions before old by revision. What left a stream earlier is
// due with what left it later, whatever the clock did: a purge needs the records.
func (l *Log) due(old time.Time) []*deletion {
	l.mu.Lock()
	defer l.mu.Unlock()
	var due []*deletion
	for _, list := range l.deleted {
		for n := len(list); n > 0; n-- {
			if !list[n-1].at.After(old) {
				due = append(due, list[:n]...)
				break
			}
		}
	}
	return sorted(due)
}

// raiseFloor refuses readers below floor, now and after a restart. It comes
// before anything is removed.
func (l *Log) raiseFloor(floor uint64) error {
	l.mu.Lock()
	l.floor = max(l.floor, floor)
	floor = l.floor
	l.mu.Unlock()
	b, err := l.engine.NewBatch()
	if err != nil {
		return err
	}
	if err := b.Set([]byte(spaceFloor), binary.BigEndian.AppendUint64(nil, floor)); err != nil {
		b.Discard()
		return err
	}
	return l.engine.Apply(b, engine.Sync)
}

// purgeDeletion removes what one deletion left. The record that says that there is
// work to do goes last.
func (l *Log) purgeDeletion(ctx context.Context, d *deletion) error {
	seen := map[facet]bool{}
	for from := d.first; from <= d.last; from += purgeChunk {
		if err := ctx.Err(); err != nil {
			return err
		}
		if err := l.purgeIndexes(d, from, min(from+purgeChunk, d.last+1), seen); err != nil {
			return err
		}
	}
	if err := l.purgeRest(d, seen); err != nil {
		return err
	}
	l.mu.Lock()
	l.forget(d)
	if h := l.heads.streams[d.uid]; d.whole && h != nil && h.no == d.no && h.inflight == 0 {
		l.heads.drop(h)
	}
	l.mu.Unlock()
	if d.whole {
		l.idents.Remove(d.no)
	}
	l.engine.Reclaim(ctx, dataKey(d.no, d.first), dataKey(d.no, d.last+1))
	return nil
}

// press makes a purge that is due now on a full disk.
func (l *Log) press() {
	if !l.engine.Full() {
		return
	}
	select {
	case l.pressed <- struct{}{}:
	default: // one is due already
	}
}

// purgeIndexes removes the index entries of the events from to to-1 that are not
// under the stream's own number, and notes their facets.
func (l *Log) purgeIndexes(d *deletion, from, to int64, seen map[facet]bool) error {
	b, err := l.engine.NewBatch()
	if err != nil {
		return err
	}
	it, err := l.engine.NewIter(dataKey(d.no, from), dataKey(d.no, to))
	if err != nil {
		b.Discard()
		return err
	}
	for ok := it.First(); ok; ok = it.Next() {
		p, err := parseData(it.Key(), it.Value())
		if err != nil {
			b.Discard()
			return errors.Join(err, it.Close())
		}
		e, h, err := d.decode(p.seq, p.raw)
		if err != nil {
			b.Discard()
			return errors.Join(err, it.Close())
		}
		seen[h.typ], seen[facetSeverity+h.sev] = true, true
		keys := [][]byte{
			revisionKey(h.rev), namespaceKey(facetAll, d.ns, h.rev),
			namespaceKey(h.typ, d.ns, h.rev), namespaceKey(facetSeverity+h.sev, d.ns, h.rev),
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
	return l.engine.Apply(b, engine.NoSync)
}

// purgeRest removes what is under the stream's number, and the stream if it left.
// Of a stream that goes on the de-duplication keys stay, so that each is used once.
func (l *Log) purgeRest(d *deletion, seen map[facet]bool) error {
	b, err := l.engine.NewBatch()
	if err != nil {
		return err
	}
	if d.whole {
		for _, prefix := range [][]byte{dataPrefix(d.no), facetStream(d.no), dedupPrefix(d.no)} {
			err = errors.Join(err, b.DeleteRange(prefix, after(prefix)))
		}
		err = errors.Join(err, b.Delete(headKey(d.no)), b.Delete(uidKey(d.uid)))
	} else {
		err = errors.Join(err, b.DeleteRange(dataKey(d.no, d.first), dataKey(d.no, d.last+1)))
		for f := range seen {
			err = errors.Join(err, b.DeleteRange(facetKey(d.no, f, d.first), facetKey(d.no, f, d.last+1)))
		}
	}
	err = errors.Join(err, b.Delete(deletedKey(d.rev)))
	if err != nil {
		b.Discard()
		return err
	}
	return l.engine.Apply(b, engine.NoSync)
}
