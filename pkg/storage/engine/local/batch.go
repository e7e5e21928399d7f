// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package local

import (
	"errors"
	"fmt"

	"github.com/cockroachdb/pebble/v2"

	"github.com/platform-ai/platform/pkg/storage/engine"
)

// batch is an engine.Batch.
type batch struct {
	engine     *Engine
	b          *pebble.Batch
	sequencing bool
	err        error // first error of a write; a batch with one is never applied
}

// Next assigns the next revision. It is for Txn.Sequence only: the revisions of a refused Txn are assigned
// again. On a batch of NewBatch it returns 0.
func (b *batch) Next() uint64 {
	if !b.sequencing {
		return 0
	}
	b.engine.sequenced++
	return b.engine.sequenced
}

// Set writes v under k.
func (b *batch) Set(k, v []byte) error { return b.note(b.b.Set(k, v, nil)) }

// Delete removes k.
func (b *batch) Delete(k []byte) error { return b.note(b.b.Delete(k, nil)) }

// DeleteRange removes every key in [lo, hi).
func (b *batch) DeleteRange(lo, hi []byte) error { return b.note(b.b.DeleteRange(lo, hi, nil)) }

// SetDeferred returns a key and a value of the given lengths inside the batch. The caller fills both and
// then calls finish. Until then, nothing else may be done with b.
func (b *batch) SetDeferred(klen, vlen int) (k, v []byte, finish func() error) {
	op := b.b.SetDeferred(klen, vlen)
	return op.Key, op.Value, func() error { return b.note(op.Finish()) }
}

// Len returns the size of the batch in bytes.
func (b *batch) Len() int { return b.b.Len() }

func (b *batch) note(err error) error {
	if err != nil && b.err == nil {
		b.err = err
	}
	return err
}

// NewBatch returns a batch for background work that takes no revision, such as removing old versions. The
// caller must end it with Apply, ApplyInOrder or Discard.
func (e *Engine) NewBatch() (engine.Batch, error) {
	if err := e.acquire(); err != nil {
		return nil, err
	}
	return &batch{engine: e, b: e.db.NewBatch()}, nil
}

// own returns b as a batch of this package. It panics on a batch of another engine, which is a bug.
func own(b engine.Batch) *batch { return b.(*batch) } //nolint:forcetypeassert // see above

// Apply makes the changes of a batch atomically and ends the batch.
func (e *Engine) Apply(of engine.Batch, d engine.Durability) error {
	b := own(of)
	defer b.Discard()
	if b.err != nil {
		return fmt.Errorf("apply batch: %w", b.err)
	}
	if f := e.failure.Load(); f != nil {
		return f.err()
	}
	if err := guard(func() error { return e.db.Apply(b.b, &pebble.WriteOptions{Sync: bool(d)}) }); err != nil {
		e.fail(err)
		return e.failure.Load().err()
	}
	return nil
}

// ApplyInOrder makes the changes of a batch visible atomically and ends the batch. If callers order their
// calls, their batches also become durable in that order: a crash never keeps a batch without the ones
// before it. wait returns when the batch is durable and must be called exactly once.
func (e *Engine) ApplyInOrder(of engine.Batch) (wait func() error, err error) {
	b := own(of)
	if b.err != nil {
		defer b.Discard()
		return nil, fmt.Errorf("apply batch: %w", b.err)
	}
	if f := e.failure.Load(); f != nil {
		b.Discard()
		return nil, f.err()
	}
	if err := guard(func() error { return e.db.ApplyNoSyncWait(b.b, pebble.Sync) }); err != nil {
		e.fail(err)
		b.Discard()
		return nil, e.failure.Load().err()
	}
	return func() error {
		defer b.Discard()
		if err := b.b.SyncWait(); err != nil {
			e.fail(err)
			return e.failure.Load().err()
		}
		return nil
	}, nil
}

// Discard ends b without applying it. It may be called repeatedly, and after Apply.
func (b *batch) Discard() {
	if b.b == nil || b.sequencing {
		return
	}
	if b.engine.failure.Load() == nil {
		b.note(b.b.Close()) //nolint:errcheck,gosec // kept in b.err; closing an unapplied batch cannot lose data
	}
	b.b = nil
	b.engine.release()
}

var errPebble = errors.New("the storage engine stopped")

// guard turns Pebble's panic on a failed log write into an error.
func guard(f func() error) (err error) {
	defer func() {
		if r := recover(); r != nil {
			err = fmt.Errorf("%w: %v", errPebble, r)
		}
	}()
	return f()
}
