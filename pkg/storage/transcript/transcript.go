// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

// Package transcript stores the messages of sessions, by the UID of the
// session. Who may read and write them, and what a message must be like, is not
// its matter; that no secret is in one is.
//
// Keys, with numbers big-endian so that keys sort by them:
//
//	t uid 0 h            -> last(8) kept(8) bytes(8) first(8) oldest(8)
//	t uid 0 i id         -> order(8) unix seconds(8) digest(16)
//	t uid 0 m order(8)   -> the message as JSON but for order and content, a line end, the content
//
// Orders are dense from 1 and never given again. last is the last one given,
// kept how many messages are there and bytes their records' length. first is the
// order of the first message of the user, 0 before there is one, and oldest the
// lowest order that is kept, first aside: everything from oldest to last is
// there, and so is first.
//
// An append is one synced batch, whatever it holds. It reads the head and one
// entry i for each id that its caller chose, so its cost does not depend on the
// length of the transcript. Entries i stay when their message left by
// truncation: a late repetition of an append must not bring it back. All keys of
// a session are one range, which is how they leave. Messages take no revision:
// they are not watched.
package transcript

import (
	"context"
	"errors"
	"fmt"
	"hash/maphash"
	"sync"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/uuid"
	"k8s.io/utils/clock"

	"github.com/platform-ai/platform/pkg/storage/engine"
	"github.com/platform-ai/platform/pkg/storage/owned"
)

var (
	// ErrName refuses a session's UID or a message id that cannot be part of a
	// key: an empty one, or one with a zero byte.
	ErrName = errors.New("transcript: bad name")
	// ErrTaken refuses a message whose id belongs to one with other content.
	ErrTaken = errors.New("transcript: the id belongs to another message")
	// ErrSecretID refuses a message whose id looks like a credential.
	ErrSecretID = errors.New("transcript: the id looks like a credential")
	// ErrNotFound tells that no message ever had the id.
	ErrNotFound = errors.New("transcript: no such message")
)

// CorruptError tells of a record that this package did not write, or not whole.
type CorruptError struct {
	Key []byte
}

// Error names the key.
func (e *CorruptError) Error() string { return fmt.Sprintf("transcript: corrupt record %q", e.Key) }

// Options of a Store. The zero value is usable.
type Options struct {
	// Clock times messages, to the second. Default: the real clock.
	Clock clock.PassiveClock
	// NewID makes ids of messages that come without one. Default: random UUIDs.
	NewID func() string
}

// shards is the number of locks. Sessions that share one wait for each other.
const shards = 256

// Store is the transcripts of an engine.
type Store struct {
	engine engine.Engine
	clock  clock.PassiveClock
	newID  func() string
	seed   maphash.Seed
	// locks serialize the writes of a session. One is held for writing until the
	// write is durable, so a reader never sees what a crash could take back.
	locks [shards]sync.RWMutex
}

// New returns the transcripts of e.
func New(e engine.Engine, o Options) *Store {
	if o.Clock == nil {
		o.Clock = clock.RealClock{}
	}
	if o.NewID == nil {
		o.NewID = func() string { return string(uuid.NewUUID()) }
	}
	return &Store{engine: e, clock: o.Clock, newID: o.NewID, seed: maphash.MakeSeed()}
}

func (s *Store) lock(uid types.UID) *sync.RWMutex {
	return &s.locks[maphash.String(s.seed, string(uid))%shards]
}

// Info is the size of a transcript.
type Info struct {
	// Messages is how many there are, Bytes the length of their records.
	Messages, Bytes int64
	// Last is the order of the newest message, 0 for none.
	Last int64
}

// Truncated reports whether messages have left.
func (i Info) Truncated() bool { return i.Last > i.Messages }

// Info returns the size of a session's transcript. One that has none is empty.
func (s *Store) Info(_ context.Context, uid types.UID) (Info, error) {
	if owned.Bad(string(uid)) {
		return Info{}, nil
	}
	l := s.lock(uid)
	l.RLock()
	defer l.RUnlock()
	h, err := s.head(uid)
	return h.info(), err
}

// Delete removes the transcript of a session. Nothing there is no error.
func (s *Store) Delete(ctx context.Context, uid types.UID) error {
	if owned.Bad(string(uid)) {
		return fmt.Errorf("delete: %w", ErrName)
	}
	l := s.lock(uid)
	l.Lock()
	defer l.Unlock()
	if err := s.write(ctx, engine.Free, func(b engine.Batch) error { return space.Clear(b, uid) }); err != nil {
		return fmt.Errorf("delete: %w", err)
	}
	return nil
}

// Owners calls f with each session that has a transcript; see owned.Space.
func (s *Store) Owners(ctx context.Context, f func(types.UID) error) error {
	return space.Owners(ctx, s.engine, f)
}

// write applies one synced batch.
func (s *Store) write(ctx context.Context, need engine.Need, fill func(engine.Batch) error) error {
	b, err := owned.NewBatch(ctx, s.engine, need, fill)
	if err != nil {
		return err
	}
	return s.engine.Apply(b, engine.Sync)
}
