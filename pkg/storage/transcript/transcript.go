// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

// Package transcript stores the messages of sessions by the UID of the session, and removes secrets from
// them. It does not decide who may read and write messages, or what a valid message is.
//
// Keys, with numbers big-endian so that keys sort by them:
//
//	t uid 0 h            -> last(8) kept(8) bytes(8) first(8) oldest(8)
//	t uid 0 i id         -> order(8) unix seconds(8) digest(16)
//	t uid 0 m order(8)   -> the message as JSON without order and content, a line end, the content
//	t uid 0 x            -> order(8) namespace 0 name
//
// Orders are dense from 1 and never reused. last is the last order assigned, kept is the number of messages
// kept, and bytes is the length of their records. first is the order of the first message of the user, 0
// before there is one. oldest is the lowest order that is kept, not counting first. All messages from
// oldest to last are kept, and so is first.
//
// x says up to which order the messages are in the full-text index, and as which session. The rows of the index are in
// the batch of the append. A transcript that was stored before there was an index has no x, and Catch indexes it.
//
// An append is one synced batch, whatever its size. It reads the head and one entry i for each id that its
// caller chose, so its cost does not depend on the length of the transcript. Entries i stay when their
// message is removed by truncation, because a late retry of an append must not bring the message back. All
// keys of a session are one range, so that they can be removed together. Messages take no revision because
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
	"github.com/platform-ai/platform/pkg/storage/fulltext"
	"github.com/platform-ai/platform/pkg/storage/owned"
)

var (
	// ErrName refuses a session's UID or a message id that cannot be part of a
	// key: an empty one, or one with a zero byte.
	ErrName = errors.New("invalid name or UID of a transcript")
	// ErrTaken refuses a message whose id belongs to a message with other content.
	ErrTaken = errors.New("the id belongs to another message")
	// ErrSecretID refuses a message whose id looks like a credential.
	ErrSecretID = errors.New("the id looks like a credential")
	// ErrNotFound reports that no message ever had the id.
	ErrNotFound = errors.New("no such message")
)

// CorruptError reports a record that this package did not write, or that is incomplete.
type CorruptError struct {
	Key []byte
}

// Error includes the key.
func (e *CorruptError) Error() string { return fmt.Sprintf("corrupt record %q of a transcript", e.Key) }

// Options configure a Store. The zero value is usable.
type Options struct {
	// Clock times messages, to the second. Default: the real clock.
	Clock clock.PassiveClock
	// Index, if set, finds messages by their text.
	Index *fulltext.Index
	// NewID makes ids of messages that come without one. Default: random UUIDs.
	NewID func() string
}

// shards is the number of locks. Sessions that share one wait for each other.
const shards = 256

// Store stores transcripts in an engine.
type Store struct {
	engine engine.Engine
	clock  clock.PassiveClock
	index  *fulltext.Index // may be nil
	newID  func() string
	seed   maphash.Seed
	// locks serialize the writes of a session. A writer holds its lock until the write is durable, so a
	// reader never sees data that a crash could still remove.
	locks [shards]sync.RWMutex
}

// New returns the transcript store in e.
func New(e engine.Engine, o Options) *Store {
	if o.Clock == nil {
		o.Clock = clock.RealClock{}
	}
	if o.NewID == nil {
		o.NewID = func() string { return string(uuid.NewUUID()) }
	}
	return &Store{engine: e, clock: o.Clock, index: o.Index, newID: o.NewID, seed: maphash.MakeSeed()}
}

func (s *Store) lock(uid types.UID) *sync.RWMutex {
	return &s.locks[maphash.String(s.seed, string(uid))%shards]
}

// Info is the size of a transcript.
type Info struct {
	// Messages is how many messages are kept, and Bytes is the total length of their records.
	Messages, Bytes int64
	// Last is the order of the newest message, 0 for none.
	Last int64
}

// Truncated reports whether messages were removed by truncation.
func (i Info) Truncated() bool { return i.Last > i.Messages }

// Info returns the size of a session's transcript. A session without one has an empty transcript.
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

// Delete removes the transcript of a session. It is not an error if there is none.
func (s *Store) Delete(ctx context.Context, uid types.UID) error {
	if owned.Bad(string(uid)) {
		return fmt.Errorf("delete: %w", ErrName)
	}
	if err := s.unindex(ctx, uid); err != nil {
		return fmt.Errorf("delete: %w", err)
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
