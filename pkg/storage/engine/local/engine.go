// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

// Package local is the engine that keeps a store on this machine's disk, in Pebble. Package engine defines
// the contract, and the FORMAT.md there describes the files and keys.
//
// Around Pebble it adds what happens when the disk is full, hangs or loses data:
//
//	space.go       the reserve of free space and the ballast: which writes are refused on a full disk
//	reclaim.go     the space of deleted ranges, which is returned at once on a full disk
//	patience.go    an opening that waits for space and descriptors, and an open store that waits for descriptors
//	disk.go        operations that the disk has not answered yet, which Ready reports
//	failure.go     the end of the store when the outcome of a write is unknown
//	mark.go        store.mark, which says what the store must have (marked.go keeps it up to date, reached.go adds each commit)
//	continuity.go  the comparison of a store with its mark, before and after it is opened
//	loss.go        the losses that are found, refused or accepted
//	damagedlog.go  a write-ahead log whose content is damaged
//	damage.go      tables whose content is damaged, which scrub.go finds once a day
//
// The mark exists because Pebble opens a store whose write-ahead log or marker is missing as if nothing had been there. Nothing
// in a store is modified before it is known to be complete, so what is missing can be put back.
//
// A changed byte of a table makes reads of its block fail, and nothing else: the process goes on. Only an opening that needs the
// block fails.
package local

import (
	"context"
	"errors"
	"fmt"
	"math"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/bloom"
	"github.com/cockroachdb/pebble/v2/sstable"
	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/go-logr/logr"
	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/klog/v2"
	"k8s.io/utils/clock"

	"github.com/platform-ai/platform/pkg/storage/engine"
)

// FS is the file system that the store lives on.
type FS = vfs.FS

// Options configure an Engine. The zero value of every field but Dir is usable.
type Options struct {
	// Dir is the store's directory. It is created if it does not exist; its parent must exist.
	Dir string
	// FS is the file system. Default: that of the operating system.
	FS FS
	// BlockCacheBytes is the size of the cache of blocks read, which may also use what the memtables leave of twice
	// MemTableBytes. Its memory is allocated on use. Default: 64 MiB.
	BlockCacheBytes int64
	// MemTableBytes is the size that a memtable grows to under load. It starts at 256 KiB, and up to four
	// exist, two of them also while nothing is written. Default: 8 MiB, or 1/128 of a volume smaller than 1 GiB.
	MemTableBytes int64
	// Reserve is how many bytes of the volume are kept free by refusing writes that add to the store.
	// Negative means none. Default: 256 MiB, or an eighth of a volume smaller than 2 GiB. It has no effect
	// on a file system that does not report its free space.
	Reserve int64
	// ReclaimAfter is how long Reclaim waits for more to be deleted. Default: 1 minute.
	ReclaimAfter time.Duration
	// GroupBytes ends a commit group once its batch is larger. Default: 4 MiB.
	GroupBytes int
	// Clock measures commit durations. Default: the real clock.
	Clock clock.PassiveClock
	// Registerer, if set, holds the store's metrics until Close.
	Registerer prometheus.Registerer
	// OnFatal is called once, with the store's locks held, if the disk fails in a way that leaves the
	// outcome of a write unknown. It should end the process. Default: log the error and exit with status 1.
	OnFatal func(error)
	// OnCorruption, if set, is called for a damaged block, which is otherwise logged and counted. Reading the block returns an
	// engine.ErrDamaged in any case.
	OnCorruption func(error)
	// Mark is the path of a small file, outside of Dir, that records what the store must hold. If it is set, a store that has
	// lost some of that is refused with a *LossError. The file is made if it does not exist.
	Mark string
	// Keys are files that exist only where a store was made. If one exists, an empty Dir is refused with a *LossError.
	Keys []string
	// AcceptLoss are the names of losses with which the store is opened all the same. It then continues from a new Base, and
	// records the losses.
	AcceptLoss []string
	// Waiting, if set, is called before each pause of an Open that waits for space or for descriptors, and of an open store that waits
	// for descriptors.
	Waiting func(cause error, pause time.Duration)
}

const (
	defaultBlockCache = 64 << 20
	defaultMemTable   = 8 << 20
	defaultGroup      = 4 << 20

	firstRevision = 1 // of an empty store, so that 0 can mean "none" and "latest" as in the Kubernetes API
)

func (o *Options) ensureDefaults(log logr.Logger) {
	if o.FS == nil {
		o.FS = vfs.Default
	}
	if o.BlockCacheBytes == 0 {
		o.BlockCacheBytes = defaultBlockCache
	}
	if o.ReclaimAfter == 0 {
		o.ReclaimAfter = time.Minute
	}
	if o.GroupBytes == 0 {
		o.GroupBytes = defaultGroup
	}
	if o.Clock == nil {
		o.Clock = clock.RealClock{}
	}
	if o.OnFatal == nil {
		o.OnFatal = func(err error) {
			log.Error(err, "The store failed; exiting so that no write is lost silently")
			klog.FlushAndExit(klog.ExitFlushTimeout, 1)
		}
	}
}

var _ engine.Engine = (*Engine)(nil)

// Engine implements engine.Engine. All methods may be called concurrently.
//
//large:fields the phases of a commit, the rules of a full disk and the history share one lock, one queue and one state
//large:lines the interface has many operations, and each phase of a commit is one more
type Engine struct {
	opts          Options
	log           logr.Logger
	db            *pebble.DB
	marked        *markedFS // nil without a mark
	losses        int       // accepted losses; set by Open
	lock          *pebble.Lock
	metrics       *metrics
	space         *space
	disk          *disk
	wait          *patience // of the opening
	damage        *damage
	readerOptions sstable.ReaderOptions // for verifying tables
	probing       atomic.Bool           // a probe of the disk is in progress
	reclaimer     *reclaimer

	// refs counts operations in flight. Close adds closedRefs to refuse new ones.
	refs    atomic.Int64
	drained chan struct{} // gets a value when the last operation ends after Close began

	mu      sync.Mutex // guards queue and leading; never held while waiting
	queue   []*pending
	leading bool

	// Only the commit leader touches these; the hand-over of leadership orders them.
	sequenced uint64
	previous  chan struct{} // closed when the group before the current one is published

	published atomic.Uint64
	base      uint64      // set by Open
	id        string      // set by Open
	copying   atomic.Bool // a checkpoint is open
	failure   atomic.Pointer[failure]
	degraded  atomic.Pointer[error] // last background error, until a flush or compaction succeeds
}

const closedRefs = math.MinInt64 / 4 // far enough from 0 and from the minimum for any number of calls in flight

var (
	revisionKey = []byte("mrevision")
	baseKey     = []byte("mbase")
)

// Open opens the store in o.Dir, creating it if there is none. It returns engine.ErrLocked while another
// process has the store open. It returns a *LayoutError, having modified nothing, if the directory holds
// anything else than a store of this version, and a *LossError if the store has lost something. While the disk is full, or the process
// has no descriptors left, it waits. The store uses the logger in ctx for as long as it is open.
func Open(ctx context.Context, o Options) (*Engine, error) {
	log := klog.FromContext(ctx).WithName("engine")
	o.ensureDefaults(log)
	type opened struct {
		e   *Engine
		err error
	}
	wait, done := newPatience(ctx, log, o.Waiting), make(chan opened, 1)
	go func() {
		e, err := openStore(o, log, wait)
		done <- opened{e, err}
	}()
	var err error
	select {
	case r := <-done:
		return r.e, r.err
	case err = <-wait.broken:
	case <-wait.abandoned:
		err = context.Cause(ctx)
	}
	go func() {
		if r := <-done; r.err == nil {
			_ = r.e.Close() // nobody has used it
		}
	}()
	return nil, fmt.Errorf("open store %s: %w", o.Dir, err)
}

func openStore(o Options, log logr.Logger, wait *patience) (_ *Engine, err error) {
	raw := o.FS
	e := &Engine{log: log, wait: wait, drained: make(chan struct{}, 1), previous: make(chan struct{})}
	e.disk = newDisk(o.Clock, e.slow)
	o.FS = observed{raw, e.disk, wait}
	e.opts = o
	e.reclaimer, e.damage = newReclaimer(e), &damage{log: log}
	e.metrics = newMetrics(e)
	lock, check, err := claim(&o)
	if err != nil {
		return nil, fmt.Errorf("open store %s: %w", o.Dir, err)
	}
	e.lock = lock
	e.space = watchSpace(raw, &e.opts, log)
	room := e.space.dropBallast
	wait.room.Store(&room)
	if e.opts.MemTableBytes == 0 {
		e.opts.MemTableBytes = e.space.memTable()
	}
	close(e.previous)
	defer func() {
		if err != nil {
			err = errors.Join(fmt.Errorf("open store %s: %w", o.Dir, readable(err)), check.m.close(), lock.Close())
		}
	}()
	if err := check.resolve(&o); err != nil {
		return nil, err
	}
	if err := removeCheckpoint(o.FS, o.Dir); err != nil {
		return nil, fmt.Errorf("remove what is left of a checkpoint: %w", err)
	}
	if o.Mark != "" {
		e.marked = newMarkedFS(&o, check.m, e)
	}
	// Pebble counts memtables against the cache: the one that is written, and one that it keeps for the next. Without room
	// for both, a store that is written has no cache left.
	cache := pebble.NewCache(o.BlockCacheBytes + 2*e.opts.MemTableBytes)
	defer cache.Unref()
	for e.db == nil {
		err := guard(func() (err error) { e.db, err = pebble.Open(o.Dir, e.pebbleOptions(cache)); return err })
		if err == nil {
			break
		}
		if accepted, err := check.replaying(err, &o); !accepted || err != nil {
			return nil, tablesLost(err)
		}
	}
	if err := e.recover(check); err != nil {
		return nil, errors.Join(err, e.db.Close())
	}
	if o.Registerer != nil {
		if err := o.Registerer.Register(e.metrics); err != nil {
			return nil, errors.Join(err, e.db.Close())
		}
	}
	wait.open.Store(true)
	e.marked.run(e.reclaimer.ctx)
	go e.scrub(e.reclaimer.ctx)
	return e, nil
}

func (e *Engine) pebbleOptions(cache *pebble.Cache) *pebble.Options {
	o := &pebble.Options{
		Cache:                       cache,
		FS:                          e.fileSystem(),
		Lock:                        e.lock,
		FormatMajorVersion:          pebbleFormat,
		MemTableSize:                uint64(e.opts.MemTableBytes),
		MemTableStopWritesThreshold: 4,
		L0CompactionThreshold:       8,
		L0StopWritesThreshold:       64,
		MaxOpenFiles:                openTables(),
		Logger:                      pebbleLog{e},
		EventListener:               e.events(),
	}
	for i := range o.Levels {
		o.Levels[i].FilterPolicy = bloom.FilterPolicy(10) // values are read by their exact key
	}
	e.readerOptions = o.MakeReaderOptions()
	return o
}

// openTables returns how many tables may be open at a time: Pebble's default, or half of the files that the process may open, so that
// a store with many tables leaves descriptors to connections.
func openTables() int {
	const usual = 1000
	var limit syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &limit); err != nil {
		return usual
	}
	return int(min(usual, limit.Cur/2))
}

// recover finds the revision of the last write, and the store's identity. Batches are atomic and hold the
// revision, so nothing else needs repair.
func (e *Engine) recover(check *continuity) (err error) {
	if e.sequenced, err = readNumber(e.db, revisionKey, firstRevision); err != nil {
		return err
	}
	if e.base, err = readNumber(e.db, baseKey, 0); err != nil {
		return err
	}
	e.published.Store(e.sequenced)
	if err := e.identify(); err != nil {
		return err
	}
	return e.continued(check)
}

var errCorruptNumber = errors.New("the record is not 8 bytes")

// Close waits for operations in flight, including iterators, and closes the store. If one waits for a descriptor, it returns an
// error, and the process should end. Later calls of any method that can fail return engine.ErrClosed.
func (e *Engine) Close() error {
	n := e.refs.Add(closedRefs)
	if n < closedRefs {
		e.refs.Add(-closedRefs)
		return engine.ErrClosed
	}
	e.reclaimer.stop()
	close(e.wait.closing)
	ended := make(chan error, 1)
	go func() {
		if n > closedRefs {
			<-e.drained
		}
		ended <- e.end()
	}()
	select {
	case err := <-ended:
		return err
	case <-e.wait.stuck:
		return fmt.Errorf("close store %s: %w", e.opts.Dir, e.wait.lacks())
	}
}

// end closes the store, which nobody uses any more.
func (e *Engine) end() error {
	if e.opts.Registerer != nil {
		e.opts.Registerer.Unregister(e.metrics)
	}
	f := e.failure.Load()
	switch {
	case f == nil:
		return errors.Join(e.shut(), e.lock.Close())
	case f.stuck:
		// Pebble still holds its locks. The lock on the directory ends with the process.
		return f.err()
	default:
		return errors.Join(f.err(), guard(e.db.Close), e.lock.Close())
	}
}

// acquire keeps the database open until release.
func (e *Engine) acquire() error {
	if e.refs.Add(1) > 0 {
		return nil
	}
	e.release()
	return engine.ErrClosed
}

func (e *Engine) release() {
	if e.refs.Add(-1) == closedRefs {
		select {
		case e.drained <- struct{}{}:
		default:
		}
	}
}

// Revision returns the highest revision that is durable and published. A fresh
// store is at 1.
func (e *Engine) Revision() uint64 { return e.published.Load() }

// Base returns the revision that the last Rebase moved to, or 0 if there was none. Nobody may resume from a
// revision below it.
func (e *Engine) Base() uint64 { return e.base }

// Advance makes rev the published revision. A Txn calls it from Publish with one of its own revisions,
// under the lock that guards the Txn's state. A reader that holds that lock then never sees state newer
// than Revision, nor a Revision newer than the state.
func (e *Engine) Advance(rev uint64) { e.published.Store(rev) }

// Healthy returns nil while the store works. Otherwise it returns the failure that stopped the store, or
// the last error of a background flush or compaction until one succeeds. A full disk is not an error here;
// see Full. Neither is a lack of descriptors; see Ready.
func (e *Engine) Healthy() error {
	if f := e.failure.Load(); f != nil {
		return f.err()
	}
	// On a full disk, without descriptors, or over a damaged table, background work fails. Reads and deletes go on, and a restart
	// would not help.
	if err := e.degraded.Load(); err != nil && !errors.Is(*err, syscall.ENOSPC) && !Exhausted(*err) && !corrupted(*err) {
		return fmt.Errorf("background work: %w", *err)
	}
	if e.refs.Load() < 0 {
		return engine.ErrClosed
	}
	return nil
}
