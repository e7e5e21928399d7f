// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

// Package eventlog is the durable, append-only log of execution events.
//
// A task has one stream, known by the task's UID. Append validates, redacts and
// truncates (pkg/event), assigns, commits and publishes; a batch is one commit.
// The commit assigns to each event its seq (dense from 1 in the stream), its
// revision (of the engine's store-wide counter) and, when the stream has a
// session, its cursor (dense in the session). Everything that a reader may
// filter by is an index written in the same engine batch. FORMAT.md draws the keys.
//
// Invariants:
//
//	INV-E1  seq is dense from 1 in a stream, and grows with the revision.
//	INV-E2  The cursor of a session grows with the revision and never changes.
//	INV-E3  Nothing is delivered that is not durable. Pebble shows a batch before
//	        its sync, so every read is bounded by the published revision.
//	INV-E4  After a terminal event nothing but late events is appended to the stream.
//	INV-E5  A namespace has one live stream per task name. A new UID under the
//	        name deletes the stream of the old one in the same commit.
//	INV-E6  An event with a de-duplication key is stored once in its stream.
//	INV-E7  A reader that resumes from a revision at or above the floor gets
//	        every later change exactly once and in order; below it, ErrExpired.
//
// Deleting a stream of n events takes n revisions and writes one record: event i
// left at the i-th of them. The events stay readable at older revisions for a
// window of history and are then purged in the background, which raises the floor.
// Trimming is the same for the oldest events of a stream, which goes on without
// them; readers by seq or cursor are told of the gap.
//
// Memory depends on open watches and on streams in use, not on stored events:
// heads are cached in a bounded LRU, and no event is kept but those on their way
// to a reader.
package eventlog

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/utils/clock"
	"k8s.io/utils/lru"

	"github.com/platform-ai/platform/pkg/storage/engine"
	"github.com/platform-ai/platform/pkg/storage/quota"
)

// Options of a Log. The zero value of every field is usable.
type Options struct {
	// Clock gives createdAt, times bookmarks and the purge. Default: the real clock.
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
	// WatchQueue is how many events wait in memory for one slow reader; beyond,
	// it reads from disk. Default: 1024.
	WatchQueue int
	// MaxWatchLag is how many events a watch may lag behind before it is ended
	// with an error. Default: 250000.
	MaxWatchLag int64
	// ScanBudget is how many index entries one page reads in search of matches
	// before it is returned short. Default: 100000.
	ScanBudget int
	// Limits bound what tasks may append. Default: none.
	Limits Limits
	// Registerer, where set, gets the log's metrics until Close.
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

// Errors of the log, to be compared with errors.Is.
var (
	// ErrClosed refuses an append after a terminal event, of any but late events.
	ErrClosed = errors.New("eventlog: stream is closed")
	// ErrDeleted tells that the stream was deleted.
	ErrDeleted = errors.New("eventlog: stream is deleted")
	// ErrTrimmed tells that an event was stored and is no longer kept.
	ErrTrimmed = errors.New("eventlog: event is no longer kept")
	// ErrNotFound tells that there is no such event.
	ErrNotFound = errors.New("eventlog: event not found")
	// ErrExpired tells that a revision is older than what is kept; see ExpiredError.
	ErrExpired = errors.New("eventlog: revision is too old")
	// ErrFuture tells that a revision is larger than the store's; see FutureError.
	ErrFuture = errors.New("eventlog: revision is too large")
	// ErrContinue tells that a continue token is not of this log or query.
	ErrContinue = errors.New("eventlog: bad continue token")
	// ErrLagging ended a watch that did not keep up.
	ErrLagging = errors.New("eventlog: watch fell too far behind")
	// ErrShutdown ends reads and watches when the log is closed.
	ErrShutdown = errors.New("eventlog: log is shut down")
	// ErrBadStream refuses a stream without UID, namespace or task, or with a name
	// that cannot be a part of a key.
	ErrBadStream = errors.New("eventlog: bad stream")
)

// ExpiredError is an ErrExpired with the way on.
type ExpiredError struct {
	Revision, Floor uint64
	// Continue, where set, goes on with a list at the newest revision.
	Continue string
}

// Error names both revisions.
func (e *ExpiredError) Error() string {
	return fmt.Sprintf("eventlog: revision is too old: %d (%d)", e.Revision, e.Floor)
}

// Is makes every ExpiredError an ErrExpired.
func (e *ExpiredError) Is(target error) bool { return target == ErrExpired }

// FutureError is an ErrFuture with both revisions.
type FutureError struct{ Revision, Current uint64 }

// Error names both revisions.
func (e *FutureError) Error() string {
	return fmt.Sprintf("eventlog: revision is too large: %d, current: %d", e.Revision, e.Current)
}

// Is makes every FutureError an ErrFuture.
func (e *FutureError) Is(target error) bool { return target == ErrFuture }

// Log is the event log over an engine. All methods may be called concurrently.
type Log struct {
	opts    Options
	engine  *engine.Engine
	metrics *metrics
	idents  *lru.Cache // identity by stream number
	rates   *quota.Rates
	totals  *quota.Totals // of namespaces; only the commit leader touches them

	// mu guards all below. It is held neither while reading or writing the store
	// nor while waiting; a subscriber's own lock is taken under it.
	mu        sync.Mutex
	heads     heads
	floor     uint64
	forgotten uint64                   // deletions that were purged since Open
	deleted   map[uint64][]*deletion   // by stream number, oldest first, until purged
	byName    map[taskName][]*deletion // the same, by name
	topics    map[topic]map[*subscriber]struct{}
	watches   map[*watcher]struct{}
	shutdown  bool

	// leaving is the length of deleted. While it is 0 readers need not ask, and
	// take no lock for each entry that a writer could wait for.
	leaving atomic.Int64

	purge    sync.Mutex // one purge at a time; taken before mu
	stopping chan struct{}
	pressed  chan struct{}  // gets a value when a purge should not wait
	ending   sync.WaitGroup // the purger and the goroutines of watches
}

// taskName names a stream as lookups do.
type taskName struct{ ns, task string }

// Open opens the log in e. It reads what left and was not yet purged, and
// nothing else. The logger in ctx is the log's for its life; cancelling ctx does
// not close it.
func Open(ctx context.Context, e *engine.Engine, o Options) (*Log, error) {
	o.ensureDefaults()
	l := &Log{
		opts: o, engine: e, idents: lru.New(o.CachedStreams),
		deleted: map[uint64][]*deletion{}, byName: map[taskName][]*deletion{},
		topics: map[topic]map[*subscriber]struct{}{}, watches: map[*watcher]struct{}{},
		stopping: make(chan struct{}), pressed: make(chan struct{}, 1),
	}
	l.rates, l.totals = quota.NewRates(o.CachedStreams), quota.NewTotals(e, bytesKey)
	l.heads.init(o.CachedStreams)
	if err := l.load(); err != nil {
		return nil, fmt.Errorf("open event log: %w", err)
	}
	l.metrics = newMetrics()
	if o.Registerer != nil {
		if err := o.Registerer.Register(l.metrics); err != nil {
			return nil, fmt.Errorf("open event log: %w", err)
		}
	}
	if o.PurgeInterval > 0 {
		l.ending.Add(1)
		go l.purgeEvery(context.WithoutCancel(ctx), o.PurgeInterval) // ends with Close
	}
	return l, nil
}

// Close ends all watches and the purge, and waits for them. The engine stays open.
func (l *Log) Close() error {
	l.mu.Lock()
	if l.shutdown {
		l.mu.Unlock()
		return ErrShutdown
	}
	l.shutdown = true
	for w := range l.watches {
		w.Stop()
	}
	l.mu.Unlock()
	close(l.stopping)
	l.ending.Wait()
	if l.opts.Registerer != nil {
		l.opts.Registerer.Unregister(l.metrics)
	}
	return nil
}

// Revision returns the newest revision that readers see.
func (l *Log) Revision() uint64 { return l.engine.Revision() }

// Floor returns the oldest revision that can still be read or resumed from.
func (l *Log) Floor() uint64 {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.floor
}
