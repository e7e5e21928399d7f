// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package inbound_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/platform-ai/platform/pkg/storage/engine"
	"github.com/platform-ai/platform/pkg/storage/engine/local"
	"github.com/platform-ai/platform/pkg/storage/inbound"
)

// refusal is a part of a commit that refuses it.
type refusal struct{}

var errRefused = errors.New("refused")

func (refusal) Check() error             { return errRefused }
func (refusal) Write(engine.Batch) error { return nil }
func (refusal) Abandon()                 {}
func (refusal) Publish()                 {}

// TestSeen: what is remembered is there after the store was opened again, belongs to one gateway, goes with it, and is written with its commit
// or not at all.
func TestSeen(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	e, err := local.Open(t.Context(), local.Options{Dir: dir})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = e.Close() }()
	s := inbound.New(e)
	seen := inbound.Seen{Digest: strings.Repeat("0a", 32), At: time.Unix(1_700_000_000, 0).UTC()}
	put := func(gateway types.UID, id string, more ...engine.Part) error {
		p, err := s.Stage(gateway, id, seen)
		if err != nil {
			t.Fatal(err)
		}
		return e.Commit(engine.Join(engine.Grow, append([]engine.Part{p}, more...)...))
	}
	for _, gateway := range []types.UID{"a", "b"} {
		if err := put(gateway, "one"); err != nil {
			t.Fatal(err)
		}
	}
	if err := put("a", "refused", refusal{}); !errors.Is(err, errRefused) {
		t.Error(err)
	}
	if err := e.Close(); err != nil {
		t.Fatal(err)
	}
	if e, err = local.Open(t.Context(), local.Options{Dir: dir}); err != nil {
		t.Fatal(err)
	}
	s = inbound.New(e)
	has := func(gateway types.UID, id string, want bool) {
		t.Helper()
		got, err := s.Find(gateway, id)
		if err != nil || (got != nil) != want || want && *got != seen {
			t.Errorf("%s of %s: %+v, %v", id, gateway, got, err)
		}
	}
	has("a", "one", true)
	has("b", "one", true)
	has("a", "two", false)
	has("a", "refused", false)
	if err := s.Delete(t.Context(), "a"); err != nil {
		t.Fatal(err)
	}
	has("a", "one", false)
	has("b", "one", true)
	var owners []types.UID
	if err := s.Owners(t.Context(), func(uid types.UID) error { owners = append(owners, uid); return nil }); err != nil || len(owners) != 1 || owners[0] != "b" {
		t.Errorf("%v, %v", owners, err)
	}
	if _, err := s.Stage("a", "one", inbound.Seen{Digest: "short"}); err == nil {
		t.Error("a text that is no digest is accepted")
	}
}
