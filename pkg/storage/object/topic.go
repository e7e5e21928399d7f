// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package object

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"

	"github.com/google/btree"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/platform-ai/platform/pkg/storage/engine"
)

// entry is one version of a key. It never changes, except for its cached object.
type entry struct {
	key  string
	rev  uint64
	size int32
	val  atomic.Pointer[[]byte]
	obj  atomic.Pointer[decoded]
}

// decoded is an object that many readers share. It must not be changed, or handed out where it could be
// changed.
type decoded struct {
	obj  runtime.Object
	used atomic.Bool // since dropIdle last looked
}

// decodedObject returns the object if it is kept decoded, and notes the use.
func (en *entry) decodedObject() *decoded {
	d := en.obj.Load()
	if d != nil && !d.used.Load() {
		d.used.Store(true)
	}
	return d
}

func byKey(a, b *entry) bool { return a.key < b.key }

// treeDegree makes nodes of up to 127 keys. At a million keys a write copies three nodes, and walking in
// order touches little memory.
const treeDegree = 64

// topic is the part of the key space that serves one resource. Reads at a revision, writes, watches and the caches
// share its lock.
type topic struct {
	db       *DB
	prefix   string // of all its keys, with a trailing slash
	resource string // for metrics
	metrics  topicMetrics
	// decode decodes stored bytes into a new object. All stores of a topic decode in the same way.
	decode decodeFunc

	// headsMu guards heads: keys that are sequenced but not yet published. Only the commit leader adds
	// keys, and only publication removes them.
	headsMu sync.Mutex
	heads   map[string]head

	// mu guards the fields up to the blank line. A write of this topic advances the engine's revision under
	// mu, so a reader that holds it sees the state of exactly that revision. No decoding, no I/O and no
	// waiting happens under it.
	mu      sync.RWMutex
	tree    *btree.BTreeG[*entry]
	lastRev uint64      // newest revision applied to tree; at least the revision of load
	newest  *snapshot   // snapshot of tree, if one was taken since the last write
	kept    []*snapshot // older states needed for further pages of lists, oldest first
	ring    ring

	bytes  atomic.Int64 // stored bytes of the live objects
	cached atomic.Int64 // stored bytes of the objects kept decoded
	scopes scopes
}

type decodeFunc func(ctx context.Context, key string, stored []byte, rev uint64) (runtime.Object, error)

func newTopic(db *DB, prefix, resource string, decode decodeFunc) *topic {
	return &topic{
		db: db, prefix: prefix, resource: resource, decode: decode, metrics: db.metrics.of(resource), heads: map[string]head{},
		tree:   btree.NewG(treeDegree, byKey),
		ring:   ring{maxEvents: db.opts.RingEvents, maxBytes: db.opts.RingBytes},
		scopes: scopes{narrow: map[string]*scope{}},
	}
}

// load reads the live keys. No value is read.
func (t *topic) load() (err error) {
	lower := liveKey(nil, t.prefix)
	it, err := t.db.engine.NewIter(lower, upperBound(lower))
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, it.Close()) }()
	var bytes int64
	for ok := it.First(); ok; ok = it.Next() {
		v := it.Value()
		if len(v) != liveRecordLen {
			return errors.Join(fmt.Errorf("%w at %q", errRecord, it.Key()), it.Error())
		}
		en := &entry{
			key:  string(it.Key()[1:]),
			rev:  binary.BigEndian.Uint64(v),
			size: int32(binary.BigEndian.Uint32(v[revisionLen:])),
		}
		t.tree.ReplaceOrInsert(en)
		bytes += int64(en.size)
	}
	t.bytes.Store(bytes)
	// The ring is empty, and deleted keys are not among the live keys.
	t.lastRev = t.db.engine.Revision()
	t.ring.before = t.lastRev
	return it.Error()
}

// get returns the current entry of key, or nil.
func (t *topic) get(key string) *entry {
	en, _ := t.read(key)
	return en
}

// read returns the current entry of key and the revision at which it was read.
func (t *topic) read(key string) (*entry, uint64) {
	probe := entry{key: key}
	t.mu.RLock()
	defer t.mu.RUnlock()
	en, _ := t.tree.Get(&probe)
	return en, t.db.engine.Revision()
}

// stats returns the number of live objects and their stored bytes.
func (t *topic) stats() (objects, bytes int64) {
	t.mu.RLock()
	defer t.mu.RUnlock()
	return int64(t.tree.Len()), t.bytes.Load()
}

// head is the newest sequenced change of a key.
type head struct {
	change uint64 // its revision
	live   uint64 // revision of the version that the change made; 0 if it deleted the key
}

// sequenced returns the revision of the newest sequenced version of key, 0 if there is none.
func (t *topic) sequenced(key string) uint64 {
	t.headsMu.Lock()
	h, ok := t.heads[key]
	t.headsMu.Unlock()
	if ok {
		return h.live
	}
	// Looking here second is safe: a key enters the tree before it is removed from heads.
	if en := t.get(key); en != nil {
		return en.rev
	}
	return 0
}

func (t *topic) setHead(key string, h head) {
	t.headsMu.Lock()
	t.heads[key] = h
	t.headsMu.Unlock()
}

// forgetHead removes a published change from heads, unless a newer change of the key is sequenced.
func (t *topic) forgetHead(key string, change uint64) {
	t.headsMu.Lock()
	if t.heads[key].change == change {
		delete(t.heads, key)
	}
	t.headsMu.Unlock()
}

// apply adds a durable write to the index and the ring, and returns the memory that it takes there, in
// bytes.
func (t *topic) apply(w *write) (cost int64) {
	en := &entry{key: w.key, rev: w.rev, size: int32(len(w.data))}
	ev := &event{rev: w.rev, op: w.op, cur: en, data: w.data}
	if w.data != nil && t.bytes.Load() < t.db.opts.ValueCacheBytes {
		data := w.data
		en.val.Store(&data)
	}
	if w.obj != nil {
		ev.decoded(w.obj)
	}
	t.mu.Lock()
	t.closeSnapshot(w.rev)
	if w.op == opDelete {
		ev.old, _ = t.tree.Delete(en)
	} else {
		ev.old, _ = t.tree.ReplaceOrInsert(en)
	}
	size := int64(en.size)
	if ev.old != nil {
		size -= int64(ev.old.size)
		ev.oldDecoded = ev.old.obj.Load()
	}
	t.bytes.Add(size)
	t.lastRev = w.rev
	t.ring.push(ev)
	t.db.engine.Advance(w.rev)
	t.mu.Unlock()
	t.forget(ev.old)
	if w.obj != nil {
		t.remember(en, w.obj)
	}
	return ev.cost()
}

// value returns the stored bytes of an entry. The caller must not change them.
func (t *topic) value(en *entry) ([]byte, error) {
	if p := en.val.Load(); p != nil {
		return *p, nil
	}
	var scratch [256]byte
	v, ok, err := t.db.engine.Get(versionKey(scratch[:0], en.key, en.rev))
	if err == nil && !ok {
		err = ErrCompacted
	}
	return v, err
}

// remember keeps the decoded object of an entry while there is room and the entry is current. apply drops
// it afterwards.
func (t *topic) remember(en *entry, obj runtime.Object) {
	size := int64(en.size)
	if size == 0 || !t.cachesObjects() {
		return
	}
	d := &decoded{obj: obj}
	d.used.Store(true)
	if t.db.cached.Add(size) > t.db.opts.ObjectCacheBytes || !en.obj.CompareAndSwap(nil, d) {
		t.db.cached.Add(-size)
		return
	}
	t.cached.Add(size)
	if t.get(en.key) != en { // it was replaced meanwhile, perhaps before its object was kept
		t.forget(en)
	}
}

func (t *topic) forget(en *entry) {
	if en != nil && en.obj.Swap(nil) != nil {
		t.db.cached.Add(-int64(en.size))
		t.cached.Add(-int64(en.size))
	}
}

// cachesObjects reports whether objects of this topic may be kept decoded.
func (t *topic) cachesObjects() bool { return t.bytes.Load() < t.db.opts.ObjectCacheBytes }

// valueReader returns the stored bytes of entries requested in key order. It uses one iterator instead of
// one lookup for each. The caller must close it.
type valueReader struct {
	t  *topic
	it engine.Iter
	k  []byte
}

// value returns bytes that are valid until the next call.
func (r *valueReader) value(en *entry) ([]byte, error) {
	if p := en.val.Load(); p != nil {
		return *p, nil
	}
	r.k = versionKey(r.k[:0], en.key, en.rev)
	if r.it == nil {
		it, err := r.t.db.engine.NewIter(append([]byte(nil), r.k...), upperBound(append([]byte{spaceVersion}, r.t.prefix...)))
		if err != nil {
			return nil, err
		}
		r.it = it
		it.First()
	} else if !r.it.Next() || string(r.it.Key()) != string(r.k) {
		r.it.SeekGE(r.k)
	}
	if !r.it.Valid() || string(r.it.Key()) != string(r.k) {
		if err := r.it.Error(); err != nil {
			return nil, err
		}
		return nil, ErrCompacted
	}
	v := r.it.Value()
	return v, r.it.Error()
}

func (r *valueReader) close() error {
	if r.it == nil {
		return nil
	}
	return r.it.Close()
}
