// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package local

import (
	"errors"
	"fmt"

	"github.com/cockroachdb/pebble/v2"
	"k8s.io/apimachinery/pkg/util/uuid"
)

// storeKey holds the store's identity. Programs that do not know it leave it alone.
var storeKey = []byte("mstore")

// ID is the identity of the store: a random UUID, made with the store, or when a store that is older than identities is
// opened for the first time. It never changes, and a copy of the files, such as a restored backup, has it, too.
func (e *Engine) ID() string { return e.id }

// identify reads the identity, and gives the store one, durably, where it lacks one.
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
