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

	// ID is the identity of the store: a random UUID that is made with it, never changes, and is the same in every copy.
	ID() string
	// Full reports whether there is less room than the reserve.
	Full() bool
	// Healthy returns nil while the store works, and why it does not otherwise. A full disk is no such error.
	Healthy() error
	// Checkpoint makes a consistent copy of the store, which lasts until it is closed. It has every write that was
	// acknowledged before the call. Writers are not held up. There is one at a time: a second one is ErrCheckpoint.
	Checkpoint(ctx context.Context) (Checkpoint, error)
	// Close waits for operations in flight, iterators and checkpoints included, and closes the store. Later calls of any
	// method that can fail return ErrClosed.
	Close() error
}

// Reader reads what batches have written, durable or not.
type Reader interface {
	// Get returns a copy of the value of key, and whether there is one. Looking for a key that does not exist may be
	// dearer than a write; keep an index of what exists.
	Get(key []byte) (val []byte, ok bool, err error)
	// NewIter returns an iterator over [lower, upper). A nil bound is open. It must be closed.
	NewIter(lower, upper []byte) (Iter, error)
	// Revision returns the highest revision that is durable and published. A fresh store is at 1.
	Revision() uint64
	// Base returns the revision that the last Rebase moved to, and 0 if there was none: nobody may resume from a
	// revision below it.
	Base() uint64
}

// Committer puts writes in order.
type Committer interface {
	// Commit runs t through the pipeline. It returns nil when t is durable and published, and Sequence's error when t was
	// refused. An error that is ErrFailed means that the outcome is unknown until the store is opened again.
	Commit(t Txn) error
	// Advance makes rev the published revision. A Txn calls it from Publish, under the lock that guards its state, with a
	// revision of its own: a reader under that lock then never sees state newer than Revision, nor Revision newer than state.
	Advance(rev uint64)
	// Bump moves the revision by n without any other change and returns the new revision.
	Bump(n uint64) (uint64, error)
	// Rebase moves the revision by n, which must exceed what was given since the store was copied, and makes the new one
	// its Base from the next opening on. It is for a store that is restored from a backup: a client may have seen changes
	// that are not in it, under revisions that are given again otherwise, so it must neither go on from them nor take
	// what comes for what it has.
	Rebase(n uint64) (uint64, error)
}

// Background is for changes that take no revision: content that readers find through other rows, and the removal of old versions.
type Background interface {
	// NewBatch returns a batch that must be given to Apply, ApplyInOrder or Discard.
	NewBatch() (Batch, error)
	// Apply makes b's changes, atomically, and ends b.
	Apply(b Batch, d Durability) error
	// ApplyInOrder makes b's changes visible, atomically, and ends b. Batches of callers that order their calls are durable
	// in that order, too: a crash keeps none without those before it. wait returns when b is durable; it must be called
	// once.
	ApplyInOrder(b Batch) (wait func() error, err error)
	// Room refuses what Commit would, for a write of about size bytes that is made with Apply.
	Room(n Need, size int) error
	// Reclaim gives the room of deleted keys from lo to hi back to a store that is full, in the background; otherwise that
	// happens in its own time.
	Reclaim(ctx context.Context, lo, hi []byte)
}

// Txn is one atomic request.
type Txn interface {
	// Sequence runs on the commit leader, one Txn at a time, in commit order. It
	// decides against sequenced (not merely published) state and writes to b. An
	// error means that it wrote nothing; the Txn is then refused with that error.
	// It must not block on another Commit.
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
	// Overlap runs once, on the goroutine that called Commit, while the Txn waits or its
	// batch is being synced. Publish may run before it, or at the same time.
	Overlap()
}

// Needer is a Txn that is not Grow.
type Needer interface {
	Txn
	// Need is called before Sequence, on the commit leader.
	Need() Need
}

// Need says what a write does to the room of the store, and so how long it goes on when that ends.
type Need int

const (
	// Grow is a write that adds to the store. It needs the whole reserve to stay free.
	Grow Need = iota
	// Upkeep is a small write on which things that exist depend: status, leases, ends. It needs half of the reserve.
	Upkeep
	// Free is a write that makes room, or will. It needs next to nothing.
	Free
)

// Durability says what Apply waits for.
type Durability bool

// The two durabilities.
const (
	Sync   Durability = true  // return when it is durable
	NoSync Durability = false // may be lost in a crash, together with all later writes or alone
)

// Batch collects changes that become durable together. It is not safe for
// concurrent use. Keys and values are copied.
type Batch interface {
	// Next assigns the next revision. It is for Txn.Sequence only: the revisions of
	// a Txn that is refused are given again. On a batch of NewBatch it returns 0.
	Next() uint64
	// Set writes v under k.
	Set(k, v []byte) error
	// Delete removes k.
	Delete(k []byte) error
	// DeleteRange removes every key in [lo, hi).
	DeleteRange(lo, hi []byte) error
	// SetDeferred returns a key and a value of the given lengths inside the batch, to
	// be filled before finish is called. Nothing else may be done with the batch meanwhile.
	SetDeferred(klen, vlen int) (k, v []byte, finish func() error)
	// Len is the size of the batch in bytes.
	Len() int
	// Discard ends a batch of NewBatch without applying it. It may be called again, and after Apply.
	Discard()
}

// Iter walks keys in order. It sees the store as it was when it was made, and
// may keep that state on disk until Close. It is not safe for concurrent use.
type Iter interface {
	// First, Last, Next, Prev, SeekGE and SeekLT move and report whether there is a key: the first, the last, the next, the
	// previous, the first at or after k, the last before k.
	First() bool
	Last() bool
	Next() bool
	Prev() bool
	SeekGE(k []byte) bool
	SeekLT(k []byte) bool
	// Valid reports whether the iterator is at a key.
	Valid() bool
	// Key is the current key, valid until the next move.
	Key() []byte
	// Value is the current value, valid until the next move. It is nil if it cannot
	// be read; Error then says why.
	Value() []byte
	// Error is the first error met. A move that returns false may be one.
	Error() error
	// Close ends the iterator and returns the first error met. It may be called again.
	Close() error
}

// Checkpoint is a consistent copy of a store, for reading. Its methods may be called concurrently.
type Checkpoint interface {
	// Layout names the format of the files, and so the engine that opens them.
	Layout() string
	// Revision is that of the last write in the copy.
	Revision() uint64
	// Files are all files of the copy, by name.
	Files() []CheckpointFile
	// Open opens a file of the copy for reading.
	Open(name string) (io.ReadCloser, error)
	// Close removes the copy. It is called once; the engine's Close waits for it.
	Close() error
}

// CheckpointFile is one file of a checkpoint.
type CheckpointFile struct {
	// Name has no folder.
	Name string
	// Size is the length in bytes; it does not change.
	Size int64
}

// Errors of engines, to be compared with errors.Is.
var (
	ErrClosed = errors.New("engine: store is closed")
	ErrLocked = errors.New("engine: store is in use by another process")
	// ErrFailed marks every error after a write failed: the outcome of the write is unknown.
	ErrFailed = errors.New("engine: store failed")
	// ErrCheckpoint refuses a second checkpoint while one is open.
	ErrCheckpoint = errors.New("engine: another checkpoint is open")
	// ErrFull refuses a write for which there is no room: what is free is kept for deletes, for the end of what runs, and
	// for the store's own work. It ends by itself when there is room again.
	ErrFull = errors.New("the disk of the server is full")
)
