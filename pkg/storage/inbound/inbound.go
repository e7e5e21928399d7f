// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

// Package inbound remembers which events of a gateway were accepted, for as long as the gateway exists, so that an event that is delivered
// again is recognised however late: its record is removed some time after it ended, this is not. No clock decides.
//
// Keys, by the UID of the gateway:
//
//	g uid 0 sha256(32)  -> version(1) digest(32) seconds(8): the digest of an external event id, what the event said, and when it was stored
//
// A row is written in the commit of the event's record. Two commits with one key cannot both succeed, because the records of the events
// have one name. A row takes about 100 bytes. All rows of a gateway are one range and are removed with it.
package inbound

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/platform-ai/platform/pkg/storage/engine"
	"github.com/platform-ai/platform/pkg/storage/owned"
)

const (
	space owned.Space = 'g'

	version  = 1
	valueLen = 1 + sha256.Size + 8
)

// ErrName refuses a UID of a gateway that cannot be part of a key.
var ErrName = errors.New("invalid UID of a gateway")

// CorruptError reports a row that this package did not write.
type CorruptError struct{ Key []byte }

// Error includes the key.
func (e *CorruptError) Error() string {
	return fmt.Sprintf("corrupt row %q of the events of a gateway", e.Key)
}

// Store remembers events in an engine.
type Store struct{ engine engine.Engine }

// New returns the store in e.
func New(e engine.Engine) *Store { return &Store{e} }

func key(gateway types.UID, external string) []byte {
	sum := sha256.Sum256([]byte(external))
	return append(space.Key(gateway), sum[:]...)
}

// Seen is what is remembered of an event.
type Seen struct {
	// Digest is the digest of what it said, in hexadecimal digits.
	Digest string
	// At is when it was stored, in whole seconds.
	At time.Time
}

// Find returns what is remembered of an event; nil if it was never accepted.
func (s *Store) Find(gateway types.UID, external string) (*Seen, error) {
	if owned.Bad(string(gateway)) {
		return nil, ErrName
	}
	k := key(gateway, external)
	v, ok, err := s.engine.Get(k)
	if err != nil || !ok {
		return nil, err
	}
	if len(v) != valueLen || v[0] != version {
		return nil, &CorruptError{k}
	}
	return &Seen{hex.EncodeToString(v[1 : 1+sha256.Size]), time.Unix(int64(binary.BigEndian.Uint64(v[1+sha256.Size:])), 0).UTC()}, nil
}

// Stage prepares the row of an event that is stored in the commit of its record.
func (s *Store) Stage(gateway types.UID, external string, seen Seen) (engine.Part, error) {
	digest, err := hex.DecodeString(seen.Digest)
	if err != nil || len(digest) != sha256.Size {
		return nil, fmt.Errorf("digest %q: not that of a SHA-256", seen.Digest)
	}
	if owned.Bad(string(gateway)) {
		return nil, ErrName
	}
	v := append([]byte{version}, digest...)
	return row{key(gateway, external), binary.BigEndian.AppendUint64(v, uint64(seen.At.Unix()))}, nil
}

// row is a row that is going to be written. It is visible when its commit is durable, without more.
type row struct{ key, value []byte }

func (row) Check() error                 { return nil }
func (r row) Write(b engine.Batch) error { return b.Set(r.key, r.value) }
func (row) Abandon()                     {}
func (row) Publish()                     {}

// Owners calls f with each gateway of which something is remembered; see owned.Space.
func (s *Store) Owners(ctx context.Context, f func(types.UID) error) error {
	return space.Owners(ctx, s.engine, f)
}

// Delete forgets the events of a gateway. It is not an error if there are none.
func (s *Store) Delete(ctx context.Context, gateway types.UID) error {
	if owned.Bad(string(gateway)) {
		return ErrName
	}
	b, err := owned.NewBatch(ctx, s.engine, engine.Free, func(b engine.Batch) error { return space.Clear(b, gateway) })
	if err != nil {
		return err
	}
	return s.engine.Apply(b, engine.Sync)
}
