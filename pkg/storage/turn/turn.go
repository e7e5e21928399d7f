// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

// Package turn stores turns of chats while they run, by the UID of their session, so that another process can continue
// one, and the frames of the newest background turn of each session, so that any client can read them. It does not
// know what a turn is: records and steps are bytes.
//
// Keys, with numbers big-endian so that keys sort by them:
//
//	c uid 0 f seq(8)  -> type, a line end, data: a frame of the newest background turn
//	c uid 0 h         -> first(8) last(8) ended(1): its frames, which have all numbers from first to last
//	c uid 0 o         -> the record of the turn that runs; absent if none does
//	c uid 0 s step(8) -> a step of that turn
//	c uid 0 u         -> present if that turn cannot be read and was set aside
//
// Frames are numbered from 1 in a session and are never renumbered: a background turn continues after the frames of the
// one before it, which it removes. A session has one turn at a time, and its writer makes one call at a time. All keys
// of a session are one range, so that they can be removed together. They take no revision, because they are not watched.
//
// Event streams (package eventlog) were not chosen for this: a stream belongs to a task, cuts texts at 32,768 characters, and would
// keep for good what a turn needs only until its end.
package turn

import (
	"bytes"
	"cmp"
	"context"
	"encoding/binary"
	"errors"
	"fmt"

	"k8s.io/apimachinery/pkg/types"

	"github.com/platform-ai/platform/pkg/storage/engine"
	"github.com/platform-ai/platform/pkg/storage/owned"
)

const space owned.Space = 'c'

const (
	kindFrame  = 'f'
	kindHead   = 'h'
	kindRecord = 'o'
	kindStep   = 's'
	kindAside  = 'u'

	headLen = 2*8 + 1
)

// ErrName refuses a session's UID that cannot be part of a key.
var ErrName = errors.New("invalid UID of a session")

// CorruptError reports a row that this package did not write.
type CorruptError struct{ Key []byte }

// Error includes the key.
func (e *CorruptError) Error() string { return fmt.Sprintf("a stored turn is corrupt: row %q", e.Key) }

// Frame is one frame of a background turn.
type Frame struct {
	Seq  int64
	Type string
	Data []byte
}

// Head says which frames of the newest background turn there are: from First to Last. Without a turn, both are 0.
type Head struct {
	First, Last int64
	// Ended says that Last is the last frame of the turn.
	Ended bool
}

// Store stores turns in an engine.
type Store struct{ engine engine.Engine }

// New returns the store of turns in e.
func New(e engine.Engine) *Store { return &Store{e} }

func headKey(uid types.UID) []byte { return space.Key(uid, kindHead) }

func asideKey(uid types.UID) []byte { return space.Key(uid, kindAside) }

func recordKey(uid types.UID) []byte { return space.Key(uid, kindRecord) }

func numbered(uid types.UID, kind byte, n int64) []byte {
	return binary.BigEndian.AppendUint64(space.Key(uid, kind), uint64(n))
}

func (h Head) encode() []byte {
	b := binary.BigEndian.AppendUint64(make([]byte, 0, headLen), uint64(h.First))
	b = binary.BigEndian.AppendUint64(b, uint64(h.Last))
	if h.Ended {
		return append(b, 1)
	}
	return append(b, 0)
}

// Head returns which frames of a session there are.
func (s *Store) Head(uid types.UID) (Head, error) {
	v, ok, err := s.engine.Get(headKey(uid))
	if err != nil || !ok {
		return Head{}, err
	}
	if len(v) != headLen {
		return Head{}, &CorruptError{headKey(uid)}
	}
	return Head{int64(binary.BigEndian.Uint64(v)), int64(binary.BigEndian.Uint64(v[8:])), v[16] == 1}, nil
}

// Begin stores the record of a turn that begins. frames says that it will have frames, which replace those of the
// session's earlier turn. It returns the number of the first one.
func (s *Store) Begin(ctx context.Context, uid types.UID, record []byte, frames bool) (first int64, err error) {
	if owned.Bad(string(uid)) {
		return 0, ErrName
	}
	h, err := s.Head(uid)
	if err != nil {
		return 0, err
	}
	return h.Last + 1, s.write(ctx, engine.Grow, func(b engine.Batch) error {
		err := errors.Join(clearRows(b, uid, kindStep), b.Delete(asideKey(uid)), b.Set(recordKey(uid), record))
		if !frames {
			return err
		}
		return errors.Join(err, clearRows(b, uid, kindFrame), b.Set(headKey(uid), Head{First: h.Last + 1, Last: h.Last}.encode()))
	})
}

// Change is what happens to a turn that runs.
type Change struct {
	// Record replaces the record, if it is set.
	Record []byte
	// Step is appended as number Number, if it is set.
	Step   []byte
	Number int64
	// Frames follow the last frame of the turn.
	Frames []Frame
	// First is the number of the turn's first frame; it is needed with Frames and with End.
	First int64
	// End ends the turn: the record and the steps are removed, and no frame follows.
	End bool
	// Last is the number of the turn's last frame, with End; 0 if it has no frames.
	Last int64
}

// Apply stores a change at once. It returns when the change is durable. An end is accepted on a full disk.
func (s *Store) Apply(ctx context.Context, uid types.UID, c Change) error {
	need := engine.Upkeep
	if c.End {
		need = engine.Free
	}
	return s.write(ctx, need, func(b engine.Batch) error {
		var err error
		if c.Record != nil {
			err = b.Set(recordKey(uid), c.Record)
		}
		if c.Step != nil {
			err = errors.Join(err, b.Set(numbered(uid, kindStep, c.Number), c.Step))
		}
		last := c.Last
		for _, f := range c.Frames {
			value := append(append([]byte(f.Type), '\n'), f.Data...)
			err = errors.Join(err, b.Set(numbered(uid, kindFrame, f.Seq), value))
			last = f.Seq
		}
		if last > 0 {
			err = errors.Join(err, b.Set(headKey(uid), Head{c.First, last, c.End}.encode()))
		}
		if c.End {
			err = errors.Join(err, clearRows(b, uid, kindStep), b.Delete(recordKey(uid)))
		}
		return err
	})
}

// Record returns the record of the turn that runs in a session; nil if none does, or if it was set aside.
func (s *Store) Record(uid types.UID) ([]byte, error) {
	_, aside, err := s.engine.Get(asideKey(uid))
	if err != nil || aside {
		return nil, err
	}
	v, _, err := s.engine.Get(recordKey(uid))
	return v, err
}

// SetAside ends a turn that cannot be read. Its rows stay until the session's next turn begins, for whoever looks for the
// cause. If the turn has frames, f becomes the last one.
func (s *Store) SetAside(ctx context.Context, uid types.UID, f Frame) error {
	h, err := s.Head(uid)
	if _, corrupt := errors.AsType[*CorruptError](err); corrupt {
		h, err = s.counted(uid)
	}
	if err != nil {
		return err
	}
	return s.write(ctx, engine.Free, func(b engine.Batch) error {
		err := b.Set(asideKey(uid), []byte{1})
		if h.First == 0 || h.Ended {
			return err
		}
		value := append(append([]byte(f.Type), '\n'), f.Data...)
		return errors.Join(err, b.Set(numbered(uid, kindFrame, h.Last+1), value), b.Set(headKey(uid), Head{h.First, h.Last + 1, true}.encode()))
	})
}

// counted returns the head of the frames that are stored.
func (s *Store) counted(uid types.UID) (h Head, err error) {
	prefix := space.Key(uid, kindFrame)
	err = s.each(prefix, owned.After(prefix), func(key, _ []byte) error {
		if len(key) != len(prefix)+8 {
			return nil
		}
		h.Last = int64(binary.BigEndian.Uint64(key[len(prefix):]))
		h.First = cmp.Or(h.First, h.Last)
		return nil
	})
	if err == nil && h.First == 0 { // whoever reads the head finds one
		h = Head{First: 1}
	}
	return h, err
}

// Steps returns the steps of the turn that runs, in order.
func (s *Store) Steps(uid types.UID) (steps [][]byte, err error) {
	return steps, s.each(numbered(uid, kindStep, 0), owned.After(space.Key(uid, kindStep)), func(_, value []byte) error {
		steps = append(steps, bytes.Clone(value))
		return nil
	})
}

// Frames calls f with the frames after a number, in order, until f fails.
func (s *Store) Frames(uid types.UID, after int64, f func(Frame) error) error {
	return s.each(numbered(uid, kindFrame, after+1), owned.After(space.Key(uid, kindFrame)), func(key, value []byte) error {
		kind, data, ok := bytes.Cut(value, []byte{'\n'})
		if !ok || len(key) < 8 {
			return &CorruptError{bytes.Clone(key)}
		}
		return f(Frame{int64(binary.BigEndian.Uint64(key[len(key)-8:])), string(kind), bytes.Clone(data)})
	})
}

// each calls f with the rows from lo to hi. The key and the value are valid until f returns.
func (s *Store) each(lo, hi []byte, f func(key, value []byte) error) (err error) {
	it, err := s.engine.NewIter(lo, hi)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, it.Close()) }()
	for there := it.First(); there; there = it.Next() {
		value := it.Value()
		if value == nil && it.Error() != nil {
			return it.Error()
		}
		if err := f(it.Key(), value); err != nil {
			return err
		}
	}
	return it.Error()
}

// Owners calls f with each session that has rows; see owned.Space.
func (s *Store) Owners(ctx context.Context, f func(types.UID) error) error {
	return space.Owners(ctx, s.engine, f)
}

// Delete removes all rows of a session.
func (s *Store) Delete(ctx context.Context, uid types.UID) error {
	if owned.Bad(string(uid)) {
		return ErrName
	}
	return s.write(ctx, engine.Free, func(b engine.Batch) error { return space.Clear(b, uid) })
}

func clearRows(b engine.Batch, uid types.UID, kind byte) error {
	prefix := space.Key(uid, kind)
	return b.DeleteRange(prefix, owned.After(prefix))
}

// write applies one synced batch.
func (s *Store) write(ctx context.Context, need engine.Need, fill func(engine.Batch) error) error {
	b, err := owned.NewBatch(ctx, s.engine, need, fill)
	if err != nil {
		return fmt.Errorf("a stored turn: %w", err)
	}
	if err := s.engine.Apply(b, engine.Sync); err != nil {
		return fmt.Errorf("a stored turn: %w", err)
	}
	return nil
}
