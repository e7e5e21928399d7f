// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package local

import (
	"testing"

	"github.com/cockroachdb/pebble/v2"
)

// A store has one identity that never changes. Open and every copy of the files return the same one.
func TestIdentity(t *testing.T) {
	dir := t.TempDir()
	e := open(t, Options{Dir: dir})
	id := e.ID()
	if len(id) != 36 {
		t.Errorf("the identity is %q", id)
	}
	c := copied(t, e)
	twin := open(t, Options{Dir: unpack(t, c)})
	if twin.ID() != id {
		t.Errorf("a copy is %s, the store is %s", twin.ID(), id)
	}
	shut(t, twin)
	if err := c.Close(); err != nil {
		t.Error(err)
	}
	shut(t, e)
	e = open(t, Options{Dir: dir})
	if e.ID() != id {
		t.Errorf("opened again it is %s, it was %s", e.ID(), id)
	}
	other := open(t, Options{})
	if other.ID() == id {
		t.Error("two stores have one identity")
	}
	shut(t, other)

	// A store made by an earlier version lacks one.
	if err := e.Commit(&put{key: "a", value: "1"}); err != nil {
		t.Fatal(err)
	}
	revision := e.Revision()
	if err := e.db.Delete(storeKey, pebble.Sync); err != nil {
		t.Fatal(err)
	}
	shut(t, e)
	e = open(t, Options{Dir: dir})
	given := e.ID()
	if given == "" || given == id || e.Revision() != revision {
		t.Errorf("an old store got %q at revision %d, want a new identity at %d", given, e.Revision(), revision)
	}
	shut(t, e)
	e = open(t, Options{Dir: dir})
	if e.ID() != given {
		t.Errorf("it did not keep %s: %s", given, e.ID())
	}
	shut(t, e)
}
