// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

// Package object serves k8s.io/apiserver's storage.Interface from an engine.
//
// A DB owns the object keyspaces of one engine: the changelog, its compaction and expiry. Each resource has
// a Store (codec, transformer, key prefix) on top of a topic. The topic holds the resource's index of live
// keys, its ring of recent events and its watches.
//
// The index is a copy-on-write B-tree in memory that answers existence, revision, order and count. Pebble
// is read only for values, by exact key. A read takes the index and the revision under one lock, so it
// always reflects exactly one revision. A paged list keeps its copy of the index between pages. A list at
// an older revision rewinds the index along the changelog.
//
// A watch is a cursor over the ring. A watch that falls behind the ring reads the changelog on disk. If the
// changelog it needs is compacted, the watch ends with 410 Gone. No watch holds up a writer or another
// watch, and none skips an event.
//
// The FORMAT.md of package engine describes the keys on disk.
package object

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/go-logr/logr"
	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/klog/v2"
	"k8s.io/utils/clock"

	"github.com/platform-ai/platform/pkg/storage/engine"
)

// Options configure a DB. The zero value is usable.
type Options struct {
	// RingEvents and RingBytes bound the recent events that a resource keeps in
	// memory for its watches. Default: 8192 and 16 MiB.
	RingEvents int
	RingBytes  int64
	// HistoryAge and HistoryBytes bound the history that watches resume from and old lists are read from.
	// History beyond either bound is compacted. Default: 5 minutes and 1 GiB. HistoryBytes must be at least
	// 2*RingBytes.
	HistoryAge   time.Duration
	HistoryBytes int64
	// ValueCacheBytes makes a resource keep the stored bytes of its live objects in memory while they total
	// less than this. Default: 0, which reads them from the engine.
	ValueCacheBytes int64
	// ObjectCacheBytes bounds the decoded objects kept in memory, for all resources together and counted by
	// stored size. A decoded object takes about four times its stored size. A resource that is larger than
	// the bound by itself is not cached at all, so that walking over it evicts nothing. Default: 128 MiB.
	// Negative: none.
	ObjectCacheBytes int64
	// PageBytes bounds the stored bytes of a page of a list, which has fewer objects than its client asked for if they are
	// large, but at least one. Default: 16 MiB.
	PageBytes int64
	// IdleAfter is how long events and decoded objects that nobody reads stay in memory; they leave within twice that time.
	// Default: 20 seconds.
	IdleAfter time.Duration
	// BookmarkInterval is how often a client's watch that allows bookmarks gets
	// one. Default: 1 minute.
	BookmarkInterval time.Duration
	// ProgressInterval is how often an internal watch (that of a watch cache) gets a bookmark. Default: 5
	// seconds.
	ProgressInterval time.Duration
	// Clock is the clock for all timing. Default: the real clock.
	Clock clock.WithTicker
	// Registerer, if set, holds the metrics until Close.
	Registerer prometheus.Registerer
}

func (o *Options) ensureDefaults() error {
	set := func(v *int64, to int64) {
		if *v == 0 {
			*v = to
		}
	}
	if o.RingEvents == 0 {
		o.RingEvents = 8192
	}
	set(&o.RingBytes, 16<<20)
	set(&o.HistoryBytes, 1<<30)
	set(&o.ObjectCacheBytes, 128<<20)
	set((*int64)(&o.HistoryAge), int64(5*time.Minute))
	set(&o.PageBytes, 16<<20)
	set((*int64)(&o.IdleAfter), int64(20*time.Second))
	set((*int64)(&o.BookmarkInterval), int64(time.Minute))
	set((*int64)(&o.ProgressInterval), int64(5*time.Second))
	if o.Clock == nil {
		o.Clock = clock.RealClock{}
	}
	if o.HistoryBytes < 2*o.RingBytes {
		return fmt.Errorf("history of %d bytes is less than twice the ring's %d", o.HistoryBytes, o.RingBytes)
	}
	return nil
}

// DB is the object part of an engine. All methods may be called concurrently.
type DB struct {
	opts    Options
	engine  engine.Engine
	log     logr.Logger
	ctx     context.Context //nolint:containedctx // the life of the DB, for work that no single request owns
	cancel  context.CancelFunc
	wg      sync.WaitGroup // background work
	metrics *metrics

	mu     sync.Mutex // guards topics, stores and closed; taken before a topic's lock
	topics map[string]*topic
	stores map[*Store]struct{}
	closed bool

	compacting sync.Mutex    // held by the one compaction that runs
	compacted  atomic.Uint64 // history up to here is refused
	history    atomic.Int64  // bytes of history written since the DB was opened
	nextMark   atomic.Int64  // value of history at which the compactor is notified
	marked     chan struct{} // notifies the compactor that nextMark was passed
	cached     atomic.Int64  // total stored size of the objects kept decoded
	dropped    atomic.Uint64 // see Dropped
	nextExpiry atomic.Int64  // unix time of the first expiry, or later never
}

// Errors of a DB, to be compared with errors.Is.
var (
	ErrClosed = errors.New("the store is closed")
	// ErrCompacted reports a revision whose history was compacted.
	ErrCompacted = errors.New("the revision is compacted")

	errConflict = errors.New("revision conflict")
)

// Open opens the object keyspaces of e. It reads a few records, regardless of the number of objects. The
// caller must call Close before closing the engine.
func Open(ctx context.Context, e engine.Engine, o Options) (*DB, error) {
	if err := o.ensureDefaults(); err != nil {
		return nil, err
	}
	db := &DB{
		opts: o, engine: e, log: klog.FromContext(ctx).WithName("object"),
		topics: map[string]*topic{}, stores: map[*Store]struct{}{}, marked: make(chan struct{}, 1),
	}
	db.metrics = newMetrics(db)
	db.nextMark.Store(o.HistoryBytes / marksPerHistory)
	floor, ok, err := e.Get(floorKey)
	if err != nil {
		return nil, fmt.Errorf("read the compacted revision: %w", err)
	}
	db.compacted.Store(e.Base())
	if ok {
		db.compacted.Store(max(e.Base(), binary.BigEndian.Uint64(floor)))
	}
	if err := db.readNextExpiry(0); err != nil {
		return nil, err
	}
	if o.Registerer != nil {
		if err := o.Registerer.Register(db.metrics); err != nil {
			return nil, err
		}
	}
	db.ctx, db.cancel = context.WithCancel(context.WithoutCancel(ctx))
	db.wg.Add(3)
	go func() { defer db.wg.Done(); db.runCompactor() }()
	go func() { defer db.wg.Done(); db.runSweeper() }()
	go func() { defer db.wg.Done(); db.runIdler() }()
	return db, nil
}

// Close ends every watch and all background work. It does not close the engine.
func (db *DB) Close() {
	db.mu.Lock()
	db.closed = true
	stores := make([]*Store, 0, len(db.stores))
	for s := range db.stores {
		stores = append(stores, s)
	}
	db.mu.Unlock()
	for _, s := range stores {
		s.Close()
	}
	db.cancel()
	db.wg.Wait()
	if db.opts.Registerer != nil {
		db.opts.Registerer.Unregister(db.metrics)
	}
}

// Healthy returns nil while the store can serve and write.
func (db *DB) Healthy() error { return db.engine.Healthy() }

// Revision returns the highest durable and published revision.
func (db *DB) Revision() uint64 { return db.engine.Revision() }

// topic returns the topic of prefix, reading its keys on first use.
func (db *DB) topic(prefix, resource string, decode decodeFunc) (*topic, error) {
	db.mu.Lock()
	defer db.mu.Unlock()
	if db.closed {
		return nil, ErrClosed
	}
	if t := db.topics[prefix]; t != nil {
		return t, nil
	}
	t := newTopic(db, prefix, resource, decode)
	if err := t.load(); err != nil {
		return nil, fmt.Errorf("load %s: %w", prefix, err)
	}
	db.topics[prefix] = t
	return t, nil
}

// allTopics returns the topics open now.
func (db *DB) allTopics() []*topic {
	db.mu.Lock()
	defer db.mu.Unlock()
	all := make([]*topic, 0, len(db.topics))
	for _, t := range db.topics {
		all = append(all, t)
	}
	return all
}
