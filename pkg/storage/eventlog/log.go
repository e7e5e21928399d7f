// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

// Package eventlog is the durable, append-only log of execution events.
//
// A task has one stream, identified by the task's UID. Append validates, redacts and truncates events (with
// pkg/event), assigns their numbers, commits and publishes. A batch of events is one commit. The comment of
// appendTxn describes an append from start to end. The commit assigns three numbers to each event: its seq
// (dense from 1 in the stream), its revision (of the engine's store-wide counter) and, when the stream has
// a session, its cursor (dense in the session). Everything that a reader may filter by is an index written
// in the same engine batch. FORMAT.md describes the keys.
//
// Invariants:
//
//	INV-E1  seq is dense from 1 in a stream, but for what skip leaves out,
//	        and grows with the revision.
//	INV-E2  The cursor of a session grows with the revision and never changes.
//	INV-E3  Nothing is delivered that is not durable. The engine shows a batch
//	        before its sync, so every read is bounded by the published revision.
//	INV-E4  After a terminal event only late events are appended to the stream.
//	INV-E5  A namespace has one live stream per task name. A new UID under the
//	        name deletes the stream of the old one in the same commit.
//	INV-E6  An event with a de-duplication key is stored once in its stream.
//	INV-E7  A reader that resumes from a revision at or above the floor gets
//	        every later change exactly once and in order; below it, ErrExpired.
//
// Deleting a stream of n events takes n revisions and writes one record: event i is deleted at the i-th of
// them. The events stay readable at older revisions for a window of history. They are then purged in the
// background, which raises the floor. Trimming does the same to the oldest events of a stream, and the
// stream continues without them. Readers by seq or cursor are told which numbers are missing. In a store that lost writes, or was
// restored, streams and timelines leave out numbers that may have been given; see skip.
//
// A Log has two sides. The Writer changes the log and is the only one that commits. The Reader answers
// lists, pages and watches. They share the state in shared, where the Writer keeps what is sequenced, for
// the next commit, apart from what is published, for readers. A Projection adds its own rows to the commits
// of the Writer.
//
// Memory depends on open watches and on streams in use, not on stored events: heads are cached in a bounded
// LRU, and events are kept in memory only on their way to a reader.
package eventlog

import (
	"cmp"
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/utils/clock"
	"k8s.io/utils/lru"

	"github.com/platform-ai/platform/pkg/storage/engine"
	"github.com/platform-ai/platform/pkg/storage/quota"
)

// Options configure a Log. The zero value of every field is usable.
type Options struct {
	// Clock sets createdAt and times bookmarks and the purge. Default: the real clock.
	Clock clock.WithTicker
	// HistoryWindow is how long a deleted stream stays readable at older revisions.
	// Default: 5 minutes.
	HistoryWindow time.Duration
	// PurgeInterval is how often deleted streams are purged. Default: 1 minute;
	// negative: only by Purge.
	PurgeInterval time.Duration
	// BookmarkInterval is the time between bookmarks of an idle watch. Default: 1 minute.
	BookmarkInterval time.Duration
	// CachedStreams bounds the stream and session heads kept in memory. Default: 16384.
	CachedStreams int
	// WatchQueue is how many events wait in memory for one slow reader. A reader with more to read reads
	// them from disk. Default: 1024.
	WatchQueue int
	// MaxWatchLag is how many unread events a watch may have before it is ended with an error. Default:
	// 250000.
	MaxWatchLag int64
	// ScanBudget is how many index entries one page may read in search of matches. A page that reaches it
	// is returned short. Default: 100000.
	ScanBudget int
	// Limits bound what tasks may append. Default: no limits.
	Limits Limits
	// Projections add their own rows to the commits of the log, in this order. Default: none.
	Projections []Projection
	// Registerer, if set, holds the log's metrics until Close.
	Registerer prometheus.Registerer
}

func (o *Options) ensureDefaults() {
	if o.Clock == nil {
		o.Clock = clock.RealClock{}
	}
	o.HistoryWindow = cmp.Or(o.HistoryWindow, 5*time.Minute)
	o.PurgeInterval = cmp.Or(o.PurgeInterval, time.Minute)
	o.BookmarkInterval = cmp.Or(o.BookmarkInterval, time.Minute)
	o.CachedStreams = cmp.Or(o.CachedStreams, 16384)
	o.WatchQueue = cmp.Or(o.WatchQueue, 1024)
	o.MaxWatchLag = cmp.Or(o.MaxWatchLag, 250_000)
	o.ScanBudget = cmp.Or(o.ScanBudget, 100_000)
}

// Log is the event log over an engine: its writing side, its reading side, and the purge of deleted events.
// All methods may be called concurrently.
type Log struct {
	*Writer
	*Reader
	purger *purger

	shutdown   sync.Once
	registerer prometheus.Registerer
	metrics    *metrics
}

// Open opens the log in e. It reads only the deletions that are not yet purged. The log uses the logger in
// ctx for as long as it is open; cancelling ctx does not close it.
func Open(ctx context.Context, e engine.Engine, o Options) (*Log, error) {
	o.ensureDefaults()
	s := newShared(e, o)
	if err := s.load(); err != nil {
		return nil, fmt.Errorf("open event log: %w", err)
	}
	m := newMetrics()
	if o.Registerer != nil {
		if err := o.Registerer.Register(m); err != nil {
			return nil, fmt.Errorf("open event log: %w", err)
		}
	}
	p := newPurger(s)
	held := &namespaceBytes{totals: quota.NewTotals(e, bytesKey), most: o.Limits.NamespaceBytes}
	l := &Log{
		Writer: &Writer{
			shared: s, metrics: m, rates: quota.NewRates(o.CachedStreams), noted: lru.New(o.CachedStreams), purger: p,
			projections: append([]Projection{held}, o.Projections...),
		},
		Reader:     &Reader{shared: s, watches: newWatches()},
		purger:     p,
		registerer: o.Registerer,
		metrics:    m,
	}
	if o.PurgeInterval > 0 {
		p.start(context.WithoutCancel(ctx), o.PurgeInterval) // ends with Close
	}
	return l, nil
}

// Close ends all watches and the purge, and waits for them. The engine stays open.
func (l *Log) Close() error {
	err := ErrShutdown
	l.shutdown.Do(func() {
		l.watches.close()
		l.purger.close()
		if l.registerer != nil {
			l.registerer.Unregister(l.metrics)
		}
		err = nil
	})
	return err
}

// Purge removes from disk the events that were deleted or trimmed before the history window, and raises the
// floor past their deletion. It returns how many deletions it finished. If a purge is interrupted, the next
// one continues where it stopped.
func (l *Log) Purge(ctx context.Context) (int, error) { return l.purger.run(ctx) }
