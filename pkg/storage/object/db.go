// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

// Package object serves k8s.io/apiserver's storage.Interface from an engine.
//
// A DB owns the object keyspaces of one engine: the changelog, its compaction and
// expiry. Each resource has a Store (codec, transformer, key prefix) and below it a
// topic: the resource's index of live keys, its ring of recent events and its watches.
//
// The index is a copy-on-write B-tree in memory that answers existence, revision,
// order and count; Pebble is read for values only, by exact key. A read takes the
// index and the revision under one lock, so it is always of exactly one revision.
// A list that goes on keeps its copy of the index; a list of an older revision
// rewinds the index along the changelog.
//
// Watches are cursors over the ring; a watch that falls behind it reads the
// changelog on disk, and one that falls behind that is cut with 410 Gone. No watch
// holds up a writer or another watch, and none skips an event.
//
// On-disk keys are drawn in ../engine/FORMAT.md.
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

// Options of a DB. The zero value is usable.
type Options struct {
	// RingEvents and RingBytes bound the recent events that a resource keeps in
	// memory for its watches. Default: 8192 and 16 MiB.
	RingEvents int
	RingBytes  int64
	// HistoryAge and HistoryBytes bound the history that watches resume from and
	// old lists are read from: older or more than that is compacted away. Default:
	// 5 minutes and 1 GiB. HistoryBytes must be at least 2*RingBytes.
	HistoryAge   time.Duration
	HistoryBytes int64
	// ValueCacheBytes keeps the stored bytes of live objects in memory while a
	// resource holds less than this. Default: 0, they are read from the engine.
	ValueCacheBytes int64
	// ObjectCacheBytes bounds the decoded objects kept in memory, of all resources
	// together and counted by stored size; a decoded object takes about four times
	// that. A resource that is larger by itself is not kept at all, so a walk over
	// it evicts nothing. Default: 128 MiB. Negative: none.
	ObjectCacheBytes int64
	// BookmarkInterval is how often a client's watch that allows bookmarks gets
	// one. Default: 1 minute.
	BookmarkInterval time.Duration
	// ProgressInterval is how often an internal watch (of a watch cache) gets one.
	// Default: 5 seconds.
	ProgressInterval time.Duration
	// Clock is used for everything timed. Default: the real clock.
	Clock clock.WithTicker
	// Registerer, where set, gets the metrics until Close.
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
	set((*int64)(&o.BookmarkInterval), int64(time.Minute))
	set((*int64)(&o.ProgressInterval), int64(5*time.Second))
	if o.Clock == nil {
		o.Clock = clock.RealClock{}
	}
	if o.HistoryBytes < 2*o.RingBytes {
		return fmt.Errorf("object: history of %d bytes is less than twice the ring's %d", o.HistoryBytes, o.RingBytes)
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
	nextMark   atomic.Int64  // value of history at which the compactor wants to know
	marked     chan struct{} // tells the compactor that nextMark was passed
	cached     atomic.Int64  // stored bytes of objects kept decoded
	nextExpiry atomic.Int64  // unix time of the first expiry, or later never
}

// Errors of a DB, to be compared with errors.Is.
var (
	ErrClosed = errors.New("object: store is closed")
	// ErrCompacted marks a revision whose history is gone.
	ErrCompacted = errors.New("object: revision is compacted")

	errConflict = errors.New("object: revision conflict")
)

// Open opens the object keyspaces of e. It reads a few records, whatever the
// number of objects; Close must be called before the engine's.
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
	db.wg.Add(2)
	go func() { defer db.wg.Done(); db.runCompactor() }()
	go func() { defer db.wg.Done(); db.runSweeper() }()
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

// Revision is the highest durable and published revision.
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
