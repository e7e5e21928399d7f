// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package local

import (
	"errors"
	"fmt"

	"github.com/cockroachdb/pebble/v2"

	"github.com/platform-ai/platform/pkg/storage/engine"
)

// Get returns a copy of the value of key, and whether the key exists. Looking up a key that does not exist
// costs more than a write, so callers should keep an index of the keys that exist.
func (e *Engine) Get(key []byte) (val []byte, ok bool, err error) {
	if err := e.acquire(); err != nil {
		return nil, false, err
	}
	defer e.release()
	v, closer, err := e.db.Get(key)
	if errors.Is(err, pebble.ErrNotFound) {
		return nil, false, nil
	}
	if err != nil {
		return nil, false, fmt.Errorf("read %q: %w", key, readable(err))
	}
	val = append(make([]byte, 0, len(v)), v...)
	return val, true, closer.Close()
}

// iter is an engine.Iter. Until Close it keeps the files of the state that it sees on disk.
type iter struct {
	engine *Engine
	it     *pebble.Iterator
	err    error
}

// NewIter returns an iterator over [lower, upper). A nil bound is open.
func (e *Engine) NewIter(lower, upper []byte) (engine.Iter, error) {
	if err := e.acquire(); err != nil {
		return nil, err
	}
	it, err := e.db.NewIter(&pebble.IterOptions{LowerBound: lower, UpperBound: upper})
	if err != nil {
		e.release()
		return nil, fmt.Errorf("iterate over [%q, %q): %w", lower, upper, err)
	}
	return &iter{engine: e, it: it}, nil
}

// First moves to the first key and reports whether there is one.
func (i *iter) First() bool { return i.it.First() }

// Last moves to the last key and reports whether there is one.
func (i *iter) Last() bool { return i.it.Last() }

// Next moves to the next key and reports whether there is one.
func (i *iter) Next() bool { return i.it.Next() }

// Prev moves to the previous key and reports whether there is one.
func (i *iter) Prev() bool { return i.it.Prev() }

// SeekGE moves to the first key at or after k and reports whether there is one.
func (i *iter) SeekGE(k []byte) bool { return i.it.SeekGE(k) }

// SeekLT moves to the last key before k and reports whether there is one.
func (i *iter) SeekLT(k []byte) bool { return i.it.SeekLT(k) }

// Valid reports whether the iterator is at a key.
func (i *iter) Valid() bool { return i.it.Valid() }

// Key returns the current key, valid until the next move.
func (i *iter) Key() []byte { return i.it.Key() }

// Value returns the current value, valid until the next move. It returns nil if the value cannot be read;
// Error then returns the reason.
func (i *iter) Value() []byte {
	v, err := i.it.ValueAndErr()
	if err != nil && i.err == nil {
		i.err = readable(err)
	}
	return v
}

// Error returns the first error met. After a move that returned false, check it: the move may have failed.
func (i *iter) Error() error { return errors.Join(i.err, readable(i.it.Error())) }

// Close ends the iterator and returns the first error met. It may be called again.
func (i *iter) Close() error {
	if i.it == nil {
		return nil
	}
	err := errors.Join(i.err, readable(i.it.Close()))
	i.it = nil
	i.engine.release()
	return err
}
