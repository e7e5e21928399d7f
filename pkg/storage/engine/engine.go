// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"context"
	"errors"
	"io"
)

// Engine is an open store. All methods may be called concurrently.
type Engine interface {
	Reader
	Committer
	Background

	// ID returns the identity of the store: a random UUID that is assigned when the store is made, never
	// changes, and is the same in every copy.
	ID() string
	// Full reports whether free space is below the reserve.
	Full() bool
	// Healthy returns nil while the store works, and otherwise the reason it does not. A full disk, or a lack of
	// descriptors, is not an error here.
	Healthy() error
	// Ready returns nil while the store works, can open files, and its storage answers in time. Storage that hangs may answer
	// again, and descriptors may be closed, so this is no reason to restart. A store that failed or was closed is not ready,
	// for the reason that Healthy returns.
	Ready() error
	// Checkpoint makes a consistent copy of the store, which lasts until the copy is closed. The copy holds
	// every write that was acknowledged before the call. Writers are not held up. Only one checkpoint may
	// be open at a time: a second call returns ErrCheckpoint.
	Checkpoint(ctx context.Context) (Checkpoint, error)
	// Close waits for operations in flight, including iterators and checkpoints, and closes the store. Later calls of any
	// method that can fail return ErrClosed.
	Close() error
}

// Reader reads what batches have written, whether or not it is durable yet.
type Reader interface {
	// Get returns a copy of the value of key, and whether the key exists. Looking up a key that does not
	// exist may cost more than a write, so callers should keep an index of the keys that exist.
	Get(key []byte) (val []byte, ok bool, err error)
	// NewIter returns an iterator over [lower, upper). A nil bound is open. It must be closed.
	NewIter(lower, upper []byte) (Iter, error)
	// Revision returns the highest revision that is durable and published. A fresh store is at 1.
	Revision() uint64
	// Base returns the revision that the last Rebase moved to, or 0 if there was none. Nobody may resume
	// from a revision below it.
	Base() uint64
}

// Committer puts writes in order.
type Committer interface {
	// Commit runs t through the pipeline. It returns nil when t is durable and published, and Sequence's error when t was
	// refused. An error that is ErrFailed means that the outcome is unknown until the store is opened again.
	Commit(t Txn) error
	// Advance makes rev the published revision. A Txn calls it from Publish with one of its own revisions,
	// under the lock that guards the Txn's state. A reader that holds that lock then never sees state newer
	// than Revision, nor a Revision newer than the state.
	Advance(rev uint64)
	// Bump advances the revision by n without any other change and returns the new revision.
	Bump(n uint64) (uint64, error)
	// Rebase advances the revision by n and makes the new revision the store's Base from the next opening
	// on. n must exceed the number of revisions assigned since the store was copied. Rebase is for a store
	// restored from a backup. A client may have seen changes that the backup lacks, under revisions that
	// would otherwise be assigned again. Such a client must not resume from those revisions, and must not
	// mistake new changes for the ones it has seen.
	Rebase(n uint64) (uint64, error)
}

// Background makes changes that take no revision: content that readers find through other rows, and the
// removal of old versions.
type Background interface {
	// NewBatch returns a batch. The caller must end it with Apply, ApplyInOrder or Discard.
	NewBatch() (Batch, error)
	// Apply makes the changes of b atomically and ends b.
	Apply(b Batch, d Durability) error
	// ApplyInOrder makes the changes of b visible atomically and ends b. If callers order their calls,
	// their batches also become durable in that order: a crash never keeps a batch without the ones before
	// it. wait returns when b is durable and must be called exactly once.
	ApplyInOrder(b Batch) (wait func() error, err error)
	// Room returns the error with which Commit would refuse a write of about size bytes. It is for writes
	// that are made with Apply.
	Room(n Need, size int) error
	// Reclaim returns the space of deleted keys from lo to hi, in the background: at once to a full store, otherwise within
	// minutes. Without it, that space is returned at some later time, or not at all.
	Reclaim(ctx context.Context, lo, hi []byte)
}

// Txn is one atomic request.
type Txn interface {
	// Sequence runs on the commit leader, one Txn at a time, in commit order. It decides against sequenced
	// (not merely published) state and writes to b. If it returns an error, it must have written nothing,
	// and the Txn is refused with that error. It must not block on another Commit.
	Sequence(b Batch) error
	// Publish runs once after the batch is durable, in sequence order, never
	// concurrently with another Publish. It makes the Txn's effect visible.
	// Refused Txns are not published.
	Publish()
}

// Overlapper is a Txn with work that needs neither order nor durability, such as
// preparing what Publish shows.
type Overlapper interface {
	Txn
	// Overlap runs on the goroutine that called Commit, while the Txn waits or its batch is being synced, and
	// ends before Commit returns. Publish may run before it, or at the same time. It runs once if the Txn is
	// committed and writes something, otherwise at most once.
	Overlap()
}

// Needer is a Txn whose Need is not Grow.
type Needer interface {
	Txn
	// Need is called before Sequence, on the commit leader.
	Need() Need
}

// Need classifies a write by its effect on free space, which decides how long such writes are accepted as
// the disk fills up.
type Need int

const (
	// Grow is a write that adds to the store. It requires the whole reserve to be free.
	Grow Need = iota
	// Upkeep is a small write that existing objects depend on, such as a status, a lease or the end of a
	// task. It requires half of the reserve to be free.
	Upkeep
	// Free is a write that makes room now or later. It requires almost no free space.
	Free
	// Nothing is a Txn that writes nothing, and waits for those before it. It requires no free space.
	Nothing
)

// Durability selects what Apply waits for.
type Durability bool

// The two durabilities.
const (
	Sync   Durability = true  // return when it is durable
	NoSync Durability = false // may be lost in a crash, together with all later writes or alone
)

// Batch collects changes that become durable together. It is not safe for
// concurrent use. Keys and values are copied.
type Batch interface {
	// Next assigns the next revision. It is for Txn.Sequence only: the revisions of a refused Txn are
	// assigned again. On a batch of NewBatch it returns 0.
	Next() uint64
	// Set writes v under k.
	Set(k, v []byte) error
	// Delete removes k.
	Delete(k []byte) error
	// DeleteRange removes every key in [lo, hi).
	DeleteRange(lo, hi []byte) error
	// SetDeferred returns a key and a value of the given lengths inside the batch. The caller fills both
	// and then calls finish. Until then, nothing else may be done with the batch.
	SetDeferred(klen, vlen int) (k, v []byte, finish func() error)
	// Len returns the size of the batch in bytes.
	Len() int
	// Discard ends a batch of NewBatch without applying it. It may be called repeatedly, and after Apply.
	Discard()
}

// Iter walks keys in order. It sees the store as it was when it was made, and
// may keep that state on disk until Close. It is not safe for concurrent use.
type Iter interface {
	// First, Last, Next, Prev, SeekGE and SeekLT move the iterator to the first, last, next or previous
	// key, the first key at or after k, and the last key before k. They report whether such a key exists.
	First() bool
	Last() bool
	Next() bool
	Prev() bool
	SeekGE(k []byte) bool
	SeekLT(k []byte) bool
	// Valid reports whether the iterator is at a key.
	Valid() bool
	// Key returns the current key, valid until the next move.
	Key() []byte
	// Value returns the current value, valid until the next move. It returns nil if the value cannot be
	// read; Error then returns the reason.
	Value() []byte
	// Error returns the first error met. After a move that returned false, check Error: the move may have
	// failed.
	Error() error
	// Close ends the iterator and returns the first error met. It may be called again.
	Close() error
}

// Checkpoint is a consistent copy of a store, for reading. Its methods may be called concurrently.
type Checkpoint interface {
	// Layout names the format of the files, and so the engine that can open them.
	Layout() string
	// Revision returns the revision of the last write in the copy.
	Revision() uint64
	// Files lists all files of the copy by name.
	Files() []CheckpointFile
	// Open opens a file of the copy for reading.
	Open(name string) (io.ReadCloser, error)
	// Close removes the copy. It is called once; the engine's Close waits for it.
	Close() error
}

// CheckpointFile is one file of a checkpoint.
type CheckpointFile struct {
	// Name is the file name, without a directory.
	Name string
	// Size is the length in bytes. It does not change.
	Size int64
}

// Errors of engines, to be compared with errors.Is.
var (
	ErrClosed = errors.New("the store is closed")
	ErrLocked = errors.New("the store is in use by another process")
	// ErrFailed marks every error after a write has failed: the outcome of that write is unknown.
	ErrFailed = errors.New("the store failed")
	// ErrDamaged marks errors of reading data whose checksum does not match. All other data can be read.
	ErrDamaged = errors.New("a part of the store is damaged")
	// ErrCheckpoint refuses a second checkpoint while one is open.
	ErrCheckpoint = errors.New("another checkpoint is open")
	// ErrFull refuses a write for which there is no room. The remaining space is kept for deletes, for
	// ending what runs, and for the store's own work. The condition clears by itself when there is room
	// again.
	ErrFull = errors.New("the disk of the server is full")
)
