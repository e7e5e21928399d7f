// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package eventlog

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"slices"
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
		}
		if n, err := l.Purge(ctx); err != nil && ctx.Err() == nil {
			klog.FromContext(ctx).Error(err, "Purging deleted event streams failed, trying again later", "purged", n)
		}
	}
}

// Purge removes from disk the streams that were deleted longer than the window
// of history ago, and raises the floor past their deletion. It returns how many
// streams it removed. A purge that was cut off goes on where it was at the next.
func (l *Log) Purge(ctx context.Context) (int, error) {
	l.purge.Lock()
	defer l.purge.Unlock()
	old := l.opts.Clock.Now().Add(-l.opts.HistoryWindow)
	l.mu.Lock()
	var due []*deletion
	for _, d := range l.deleted {
		if !d.at.After(old) {
			due = append(due, d)
		}
	}
	l.mu.Unlock()
	slices.SortFunc(due, func(a, b *deletion) int { return int(int64(a.rev) - int64(b.rev)) })
	if len(due) == 0 {
		return 0, nil
	}
	if err := l.raiseFloor(due[len(due)-1].end()); err != nil {
		return 0, fmt.Errorf("raise the floor: %w", err)
	}
	for i, d := range due {
		if err := l.purgeStream(ctx, d); err != nil {
			return i, fmt.Errorf("purge %s/%s: %w", d.ns, d.task, err)
		}
	}
	return len(due), nil
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

// purgeStream removes one deleted stream. The record that says that there is work
// to do goes last.
func (l *Log) purgeStream(ctx context.Context, d *deletion) error {
	for from := int64(1); from <= d.last; from += purgeChunk {
		if err := ctx.Err(); err != nil {
			return err
		}
		if err := l.purgeIndexes(d, from, min(from+purgeChunk, d.last+1)); err != nil {
			return err
		}
	}
	if err := l.purgeRest(d); err != nil {
		return err
	}
	l.mu.Lock()
	l.forget(d)
	if h := l.heads.streams[d.uid]; h != nil && h.no == d.no && h.inflight == 0 {
		l.heads.drop(h)
	}
	l.mu.Unlock()
	l.idents.Remove(d.no)
	return nil
}

// purgeIndexes removes the index entries of the events from to to-1 that are not
// under the stream's own number.
func (l *Log) purgeIndexes(d *deletion, from, to int64) error {
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

// purgeRest removes what is under the stream's number, and the stream.
func (l *Log) purgeRest(d *deletion) error {
	b, err := l.engine.NewBatch()
	if err != nil {
		return err
	}
	for _, prefix := range [][]byte{dataPrefix(d.no), facetStream(d.no), dedupPrefix(d.no)} {
		err = errors.Join(err, b.DeleteRange(prefix, after(prefix)))
	}
	for _, k := range [][]byte{headKey(d.no), uidKey(d.uid), deletedKey(d.rev)} {
		err = errors.Join(err, b.Delete(k))
	}
	if err != nil {
		b.Discard()
		return err
	}
	return l.engine.Apply(b, engine.NoSync)
}
