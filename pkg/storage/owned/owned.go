// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

// Package owned keeps content that belongs to an owner, identified by the owner's UID. The content is not
// watched and takes no revision. All keys of an owner are one range of a keyspace, so that they can be
// removed together:
//
//	keyspace uid 0 …
package owned

import (
	"bytes"
	"context"
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/types"

	"github.com/platform-ai/platform/pkg/storage/engine"
)

// Space is a keyspace, identified by the first byte of its keys.
type Space byte

// BadKeyError reports a key in a keyspace that does not name an owner.
type BadKeyError struct{ Key []byte }

// Error includes the key.
func (e *BadKeyError) Error() string { return fmt.Sprintf("key %q names no owner", e.Key) }

// Bad reports whether a UID or a name cannot be a part of a key because it is empty or contains a zero byte.
func Bad(name string) bool { return name == "" || strings.ContainsRune(name, 0) }

// Key returns the start of the keys of an owner, followed by rest.
func (s Space) Key(uid types.UID, rest ...byte) []byte {
	k := make([]byte, 0, len(uid)+len(rest)+2)
	k = append(append(append(k, byte(s)), uid...), 0)
	return append(k, rest...)
}

// After returns the first key after all keys that start with prefix. The last byte of prefix must not be 0xff.
func After(prefix []byte) []byte {
	k := bytes.Clone(prefix)
	k[len(k)-1]++
	return k
}

// Clear adds the removal of all keys of an owner to b.
func (s Space) Clear(b engine.Batch, uid types.UID) error {
	prefix := s.Key(uid)
	return b.DeleteRange(prefix, After(prefix))
}

// Owners calls f with each owner that has a key, in order, until f fails. It may or may not see keys that
// are written or removed meanwhile. No lock is held while f runs.
func (s Space) Owners(ctx context.Context, e engine.Reader, f func(types.UID) error) error {
	next := []byte{byte(s)}
	for {
		if err := ctx.Err(); err != nil {
			return err
		}
		uid, err := s.ownerFrom(e, next)
		if err != nil || uid == "" {
			return err
		}
		if err := f(uid); err != nil {
			return err
		}
		next = After(s.Key(uid))
	}
}

// ownerFrom returns the first owner with a key at or after from; "" for none.
func (s Space) ownerFrom(e engine.Reader, from []byte) (types.UID, error) {
	it, err := e.NewIter(from, []byte{byte(s) + 1})
	if err != nil {
		return "", err
	}
	if !it.First() {
		return "", it.Close()
	}
	key := bytes.Clone(it.Key())
	if err := it.Close(); err != nil {
		return "", err
	}
	uid, _, ok := bytes.Cut(key[1:], []byte{0})
	if !ok {
		return "", &BadKeyError{key}
	}
	return types.UID(uid), nil
}

// NewBatch returns a batch filled by fill. It returns an error if the engine has no room for it.
func NewBatch(ctx context.Context, e engine.Background, need engine.Need, fill func(engine.Batch) error) (engine.Batch, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	b, err := e.NewBatch()
	if err != nil {
		return nil, err
	}
	if err = fill(b); err == nil {
		err = e.Room(need, b.Len())
	}
	if err != nil {
		b.Discard()
		return nil, err
	}
	return b, nil
}
