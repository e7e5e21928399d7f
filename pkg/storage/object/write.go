// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package object

import (
	"encoding/binary"
	"errors"
	"sync"

	"k8s.io/apimachinery/pkg/runtime"

	"github.com/platform-ai/platform/pkg/storage/engine"
)

// write is one conditional change of a key.
type write struct {
	topic  *topic
	key    string
	expect uint64 // revision that the key must have; 0: it must not exist
	data   []byte // stored bytes, which must not be changed any more; nil deletes
	expiry int64  // unix seconds, 0 for none
	// departs is set for an update that is a part of deleting the object, or with which a user gives it up.
	departs bool
	// index, if set, writes what the resource's Index derives from the change.
	index func(engine.Batch) error
	// decode, if set, returns the decoded object without a revision, or nil. It is unset if no decoded
	// object is to be kept. It runs once, while the write is being synced.
	decode   func() runtime.Object
	decoding sync.Once
	obj      runtime.Object // what decode returned; shared once it is published

	rev uint64 // assigned by Sequence
	op  byte
}

var (
	_ engine.Overlapper = (*write)(nil)
	_ engine.Part       = (*write)(nil)
)

// commit makes w durable and visible, or returns errConflict.
func (w *write) commit() error {
	err := w.topic.db.engine.Commit(w)
	if errors.Is(err, engine.ErrFull) {
		return full(err)
	}
	return err
}

// Need depends on the change. An update is Upkeep, because whoever may update an object may always use that
// to end something. A delete makes room, and so does what precedes it if the object has finalizers.
func (w *write) Need() engine.Need {
	switch {
	case w.data == nil, w.departs:
		return engine.Free
	case w.expect != 0:
		return engine.Upkeep
	}
	return engine.Grow
}

// Sequence checks w against the newest sequenced state and writes its records.
func (w *write) Sequence(b engine.Batch) error {
	if err := w.Check(); err != nil {
		return err
	}
	return w.Write(b)
}

// Check refuses a write whose key was changed meanwhile.
func (w *write) Check() error {
	if w.topic.sequenced(w.key) != w.expect {
		w.topic.metrics.conflicts.Inc()
		return errConflict
	}
	return nil
}

// Abandon has nothing to revert.
func (*write) Abandon() {}

// Write writes the records of a write that was checked.
func (w *write) Write(b engine.Batch) error {
	current := w.expect
	w.rev = b.Next()
	switch {
	case w.data == nil:
		w.op = opDelete
	case current == 0:
		w.op = opCreate
	default:
		w.op = opUpdate
	}
	if err := w.records(b, current); err != nil {
		return err
	}
	if w.index != nil {
		if err := w.index(b); err != nil {
			return err
		}
	}
	h := head{change: w.rev, live: w.rev}
	if w.op == opDelete {
		h.live = 0
	}
	w.topic.setHead(w.key, h)
	return nil
}

func (w *write) records(b engine.Batch, previous uint64) error {
	k, v, finish := b.SetDeferred(1+revisionLen, changeHeaderLen+len(w.key))
	k[0] = spaceChange
	binary.BigEndian.PutUint64(k[1:], w.rev)
	v[0] = w.op
	binary.BigEndian.PutUint64(v[1:], previous)
	copy(v[changeHeaderLen:], w.key)
	if err := finish(); err != nil {
		return err
	}
	if w.op == opDelete {
		return b.Delete(liveKey(nil, w.key))
	}
	k, v, finish = b.SetDeferred(1+len(w.key), liveRecordLen)
	k[0] = spaceLive
	copy(k[1:], w.key)
	binary.BigEndian.PutUint64(v, w.rev)
	binary.BigEndian.PutUint32(v[revisionLen:], uint32(len(w.data)))
	if err := finish(); err != nil {
		return err
	}
	k, v, finish = b.SetDeferred(1+len(w.key)+1+revisionLen, len(w.data))
	versionKey(k[:0], w.key, w.rev)
	copy(v, w.data)
	if err := finish(); err != nil {
		return err
	}
	if w.expiry != 0 {
		return b.Set(expiryKey(w.expiry, w.rev), []byte(w.key))
	}
	return nil
}

// Overlap decodes the object for the caller, the index and all watches.
func (w *write) Overlap() {
	w.decoding.Do(func() {
		if w.decode != nil {
			w.obj = w.decode()
		}
	})
}

// Publish adds w to the index and wakes watches.
func (w *write) Publish() {
	w.Overlap()
	if w.obj != nil && versioner.UpdateObject(w.obj, w.rev) != nil {
		w.obj = nil
	}
	cost := w.topic.apply(w)
	w.topic.forgetHead(w.key, w.rev)
	w.topic.db.wrote(w)
	w.topic.scopes.wake(w.key, w.topic.prefix, cost, &w.topic.ring)
}
