// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

// Package custody keeps the OAuth tokens of people's linked accounts (connections), by the UID of the connection. The content is bytes
// that this package does not read. It is in the store only in encrypted form, and so is it in a backup.
//
// Keys and rows, with numbers big-endian:
//
//	o uid 0  -> 01 01 version(8) key(8) wrapped(60) content(28 or more): sealed content
//	         -> 01 00: a tombstone
//
// Each write makes a new data key of 32 random bytes and encrypts the content with it. A key of the key file encrypts (wraps) the data
// key, and the row names that key by a digest. Both encryptions are AES-256-GCM (NIST SP 800-38D) with a random nonce, which is stored
// before the ciphertext, and both authenticate the keyspace, the UID and the version. So the bytes of a row are refused under another
// UID, with another version, and with the wrapped key or the content of another row. They do not protect against everything: whoever can
// write to the files of the store can put back a whole older row of the same connection, or a tombstone, and can remove both. The version
// and the digest of the key are not encrypted.
//
// Versions count the writes of a connection from 1. A write names the version that it replaces, and is refused if another one came first.
// The commit leader decides this, against all writes before it, those of its own group too. A reader gets what is durable.
// An engine must have only one Store, because the Store knows which writes are being committed.
//
// A tombstone refuses all later writes, so a refresh of a token that was under way when its owner disconnected cannot bring the tokens
// back. It replaces the row, and with it the wrapped data key. The engine never returns the old row again. But Pebble removes its bytes
// from logs and tables only when it rewrites them, at no certain time, and backups keep them. Whoever has such a file and the key file
// can still read the tokens. To make old bytes unreadable for good, change the key, call Rewrap, and destroy the old key.
package custody

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"k8s.io/apimachinery/pkg/types"

	"github.com/platform-ai/platform/pkg/storage/engine"
	"github.com/platform-ai/platform/pkg/storage/owned"
)

const space owned.Space = 'o'

// MaxData is the maximum length of the content of a row, in bytes.
const MaxData = 1 << 20

// Errors of this package, to be compared with errors.Is.
var (
	// ErrName refuses a UID that cannot be part of a key.
	ErrName = errors.New("invalid UID of a connection")
	// ErrTooLarge refuses content that is longer than MaxData.
	ErrTooLarge = errors.New("the tokens are too large")
	// ErrGone refuses to keep anything for a connection that was disconnected.
	ErrGone = errors.New("the connection was disconnected")
	// ErrNotBuried refuses to forget a connection that still has tokens.
	ErrNotBuried = errors.New("the connection still has tokens")
)

// ConflictError refuses a write because another one came first.
type ConflictError struct {
	Connection types.UID
	// Expected is the version that the writer wanted to replace, and Current the one that is stored. 0 is that of a missing row.
	Expected, Current int64
}

// Error has both versions.
func (e *ConflictError) Error() string {
	return fmt.Sprintf("the tokens of connection %s have version %d, not %d: read them again", e.Connection, e.Current, e.Expected)
}

// KeyError reports a row that is sealed under a key that the key file lacks. The row is kept, and can be read again once the key
// is back in the file and the server was restarted.
type KeyError struct {
	Connection types.UID
	// Key is the digest of the missing key, 16 hexadecimal digits. File is the path of the key file.
	Key, File string
}

// Error has the digest of the key and the path of the file.
func (e *KeyError) Error() string {
	return fmt.Sprintf("the tokens of connection %s are sealed under key %s, which %s lacks: put the key back into the file and restart the server",
		e.Connection, e.Key, e.File)
}

// CorruptError reports a row that was not written by this package for this connection.
type CorruptError struct{ Connection types.UID }

// Error has the UID of the connection.
func (e *CorruptError) Error() string {
	return fmt.Sprintf("the stored tokens of connection %s are damaged", e.Connection)
}

// Row is what is kept for a connection.
type Row struct {
	// Version counts the writes of the row from 1. It is 0 if there is no row or only a tombstone.
	Version int64
	// Data is the content. It belongs to the caller, who may clear it.
	Data []byte
	// Gone says that there is a tombstone.
	Gone bool
}

// Store keeps tokens in an engine. Its methods may be called concurrently.
type Store struct {
	engine engine.Engine
	keys   *Keys

	mu     sync.Mutex
	staged map[types.UID]*change // the newest write of a connection that is not durable yet
}

// New returns the store in e, whose rows are sealed with keys. An engine must have only one.
func New(e engine.Engine, keys *Keys) *Store {
	return &Store{engine: e, keys: keys, staged: map[types.UID]*change{}}
}

func usable(ctx context.Context, uid types.UID) error {
	if owned.Bad(string(uid)) {
		return ErrName
	}
	return ctx.Err()
}

// Load returns what is kept for a connection; Row{} if that is nothing. The error is a *KeyError if the row's key is missing, which
// leaves the row as it is, a *CorruptError or an engine.ErrDamaged if the row is damaged, or another one of the engine. With a *KeyError
// the row has its version and no data, so that it can be replaced.
func (s *Store) Load(uid types.UID) (Row, error) {
	if owned.Bad(string(uid)) {
		return Row{}, ErrName
	}
	b, err := s.durable(uid)
	if err != nil {
		return Row{}, fmt.Errorf("tokens of connection %s: %w", uid, err)
	}
	r, err := parse(uid, b)
	if err != nil || r.gone || r.version == 0 {
		return Row{Gone: r.gone}, err
	}
	data, err := s.keys.open(uid, r)
	if _, missing := errors.AsType[*KeyError](err); missing {
		return Row{Version: r.version}, err
	}
	if err != nil {
		return Row{}, err
	}
	return Row{Version: r.version, Data: data}, nil
}

// Save replaces the content of a connection if its version is the one given, 0 if there is no row yet, and returns the new version. It
// returns when the content is durable. The error is a *ConflictError if the version is another one, ErrGone after Bury, ErrTooLarge, a
// *CorruptError, or one of the engine. After an engine.ErrFailed the store must be opened again to see whether the content was kept.
//
// Save does not need the key of the row that it replaces.
func (s *Store) Save(ctx context.Context, uid types.UID, version int64, data []byte) (int64, error) {
	if err := errors.Join(ctx.Err(), fits(uid, data)); err != nil {
		return 0, err
	}
	c, err := s.saving(uid, version, data)
	if err != nil {
		return 0, err
	}
	need := engine.Upkeep // a provider may already have revoked the token that this one replaces
	if version == 0 {
		need = engine.Grow
	}
	if err := s.commit(need, c); err != nil {
		return 0, err
	}
	return version + 1, nil
}

// Stage prepares what Save does, to be committed together with other changes. The commit has the errors of Save.
func (s *Store) Stage(uid types.UID, version int64, data []byte) (engine.Part, error) {
	if err := fits(uid, data); err != nil {
		return nil, err
	}
	return s.saving(uid, version, data)
}

// fits refuses content that is too long, or a UID that cannot be part of a key.
func fits(uid types.UID, data []byte) error {
	if owned.Bad(string(uid)) {
		return ErrName
	}
	if len(data) > MaxData {
		return fmt.Errorf("%w: connection %s has %d bytes, and may have at most %d", ErrTooLarge, uid, len(data), MaxData)
	}
	return nil
}

// saving seals content as the successor of a version.
func (s *Store) saving(uid types.UID, version int64, data []byte) (*change, error) {
	row, err := s.keys.seal(uid, version+1, data)
	if err != nil {
		return nil, err
	}
	return &change{s: s, uid: uid, decide: func(now []byte) ([]byte, error) {
		r, err := parse(uid, now)
		switch {
		case err != nil:
			return nil, err
		case r.gone:
			return nil, fmt.Errorf("connection %s: %w", uid, ErrGone)
		case r.version != version:
			return nil, &ConflictError{uid, version, r.version}
		}
		return row, nil
	}}, nil
}

// Bury replaces whatever is kept for a connection by a tombstone, also if it cannot be read or there is nothing. It returns when the
// tombstone is durable. From then on Save returns ErrGone. It is not an error to call it again.
func (s *Store) Bury(ctx context.Context, uid types.UID) error {
	if err := usable(ctx, uid); err != nil {
		return err
	}
	return s.commit(engine.Free, s.burying(uid))
}

func (s *Store) burying(uid types.UID) *change {
	return &change{s: s, uid: uid, next: tombstone()}
}

// Forget removes the tombstone of a connection, after which Save starts again at version 1. So it must be called only when no writer
// can be left that read an earlier version. It returns ErrNotBuried if the connection has a row. It is not an error if there is nothing.
func (s *Store) Forget(ctx context.Context, uid types.UID) error {
	if err := usable(ctx, uid); err != nil {
		return err
	}
	return s.commit(engine.Free, s.forgetting(uid))
}

func (s *Store) forgetting(uid types.UID) *change {
	return &change{s: s, uid: uid, decide: func(now []byte) ([]byte, error) {
		if now != nil && !isTombstone(now) {
			return nil, fmt.Errorf("connection %s: %w", uid, ErrNotBuried)
		}
		return nil, nil
	}}
}

// Owners calls f with each connection that has a row or a tombstone, in the order of their UIDs, until f fails; gone says that it is a
// tombstone. It may or may not see what is written or removed meanwhile. f may call the Store.
func (s *Store) Owners(ctx context.Context, f func(uid types.UID, gone bool) error) error {
	return space.Owners(ctx, s.engine, func(uid types.UID) error {
		b, ok, err := s.engine.Get(space.Key(uid))
		if err != nil && !errors.Is(err, engine.ErrDamaged) { // a damaged row can be buried
			return fmt.Errorf("tokens of connection %s: %w", uid, err)
		}
		if err == nil && !ok {
			return nil // it was forgotten meanwhile
		}
		return f(uid, isTombstone(b))
	})
}
