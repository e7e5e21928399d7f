// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package local

import (
	"errors"
	"fmt"

	"github.com/cockroachdb/pebble/v2"
	"k8s.io/apimachinery/pkg/util/uuid"
)

// storeKey holds the store's identity. Versions that do not know the key leave it unchanged.
var storeKey = []byte("mstore")

// ID returns the identity of the store: a random UUID that never changes. It is assigned when the store is
// made, or, for a store made before identities existed, when it is next opened. A copy of the files, such
// as a restored backup, has the same identity.
func (e *Engine) ID() string { return e.id }

// identify reads the identity. If the store lacks one, it assigns one and makes it durable.
func (e *Engine) identify() error {
	v, closer, err := e.db.Get(storeKey)
	if err == nil {
		e.id = string(v)
		return closer.Close()
	}
	if !errors.Is(err, pebble.ErrNotFound) {
		return fmt.Errorf("read the identity: %w", err)
	}
	e.id = string(uuid.NewUUID())
	if err := guard(func() error { return e.db.Set(storeKey, []byte(e.id), pebble.Sync) }); err != nil {
		return fmt.Errorf("write the identity: %w", err)
	}
	return nil
}
