// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package custody

import (
	"bytes"
	"context"
	"errors"
	"fmt"

	"k8s.io/apimachinery/pkg/types"

	"github.com/platform-ai/platform/pkg/storage/engine"
)

// A commit of Rewrap has at most batchRows rows, and ends when they have batchBytes.
const (
	batchRows  = 64
	batchBytes = 256 << 10
)

// Rewrapped counts the rows that Rewrap found under another key than the first.
type Rewrapped struct {
	// Done are the rows that are under the first key now.
	Done int
	// Missing are the rows whose key is not in the key file. They are kept.
	Missing int
	// Damaged are the rows that cannot be read with their key, or not at all.
	Damaged int
}

// Rewrap wraps the data keys of all rows that are under another key under the first key of the file. It does not change the content of
// a row or its version, and a write that comes in between wins. Once it has returned without an error, and with no row that is missing or
// damaged, no row needs the other keys.
//
// It may run while the Store is used. If it is interrupted, the rows that it counted as done are durable, and the next call goes on
// with the others.
func (s *Store) Rewrap(ctx context.Context) (Rewrapped, error) {
	w := &rewrapping{s: s}
	err := space.Owners(ctx, s.engine, w.add)
	if err == nil {
		err = w.flush()
	}
	return w.result, err
}

// rewrapping is a run of Rewrap.
type rewrapping struct {
	s       *Store
	result  Rewrapped
	changes []*change
	size    int // of their rows, in bytes
}

// add takes in the row of a connection, if it needs it.
func (w *rewrapping) add(uid types.UID) error {
	row, err := w.s.get(uid)
	if errors.Is(err, engine.ErrDamaged) {
		w.result.Damaged++
		return nil
	}
	if err != nil {
		return fmt.Errorf("tokens of connection %s: %w", uid, err)
	}
	c, err := w.s.rewrapped(uid, row)
	_, missing := errors.AsType[*KeyError](err)
	_, damaged := errors.AsType[*CorruptError](err)
	switch {
	case missing:
		w.result.Missing++
		return nil
	case damaged:
		w.result.Damaged++
		return nil
	case err != nil || c == nil:
		return err
	}
	w.changes, w.size = append(w.changes, c), w.size+len(row)
	if len(w.changes) < batchRows && w.size < batchBytes {
		return nil
	}
	return w.flush()
}

// flush commits what was added.
func (w *rewrapping) flush() error {
	if len(w.changes) == 0 {
		return nil
	}
	if err := w.s.commit(engine.Upkeep, w.changes...); err != nil {
		return err
	}
	for _, c := range w.changes {
		if c.changes {
			w.result.Done++
		}
	}
	w.changes, w.size = nil, 0
	return nil
}

// rewrapped returns the change that wraps the data key of a row under the first key; nil if the row does not need it. The change writes
// nothing if the row is another one by then: whatever was saved meanwhile is under the first key.
func (s *Store) rewrapped(uid types.UID, row []byte) (*change, error) {
	r, err := parse(uid, row)
	if err != nil || r.version == 0 || r.key == s.keys.first {
		return nil, err
	}
	next, err := s.keys.rewrap(uid, r)
	if err != nil {
		return nil, err
	}
	return &change{s: s, uid: uid, decide: func(now []byte) ([]byte, error) {
		if bytes.Equal(now, row) {
			return next, nil
		}
		return now, nil
	}}, nil
}
