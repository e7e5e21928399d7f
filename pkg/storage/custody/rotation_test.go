// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package custody

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/platform-ai/platform/pkg/storage/backup"
	"github.com/platform-ai/platform/pkg/storage/engine"
	"github.com/platform-ai/platform/pkg/storage/engine/local"
)

// TestRotation: the first key seals and the others open. A row whose key was removed is kept, can be replaced and buried, and is read again
// once the key is back.
func TestRotation(t *testing.T) {
	t.Parallel()
	older, newer := newKey(), newKey()
	e := openEngine(t, t.TempDir())
	s := New(e, keysOf(t, older))
	for _, uid := range []types.UID{"kept", "replaced", "buried"} {
		save(t, s, uid, 0, "old")
	}
	id := s.keys.first.String()

	s = New(e, keysOf(t, newer, older))
	wantRow(t, s, "kept", Row{Version: 1, Data: []byte("old")})
	save(t, s, "new", 0, "new")

	s = New(e, keysOf(t, newer))
	wantRow(t, s, "new", Row{Version: 1, Data: []byte("new")})
	before := stored(t, s, "kept")
	row, err := s.Load("kept")
	lacks, ok := errors.AsType[*KeyError](err)
	if !ok || lacks.Key != id || lacks.Connection != "kept" || lacks.File != s.keys.file || row.Version != 1 || row.Data != nil {
		t.Fatalf("%+v, %v", row, err)
	}
	if !strings.Contains(err.Error(), id) || !strings.Contains(err.Error(), s.keys.file) {
		t.Errorf("%v names no key or no file", err)
	}
	if row, err = s.Load("replaced"); err == nil {
		t.Fatal("a row was read without its key")
	}
	save(t, s, "replaced", row.Version, "new")
	wantRow(t, s, "replaced", Row{Version: 2, Data: []byte("new")})
	if err := s.Bury(t.Context(), "buried"); err != nil {
		t.Fatal(err)
	}
	wantRow(t, s, "buried", Row{Gone: true})
	if !bytes.Equal(stored(t, s, "kept"), before) {
		t.Error("the row was changed")
	}

	s = New(e, keysOf(t, newer, older))
	wantRow(t, s, "kept", Row{Version: 1, Data: []byte("old")})
}

func wantRewrapped(t *testing.T, s *Store, want Rewrapped) {
	t.Helper()
	if got, err := s.Rewrap(t.Context()); err != nil || got != want {
		t.Errorf("%+v, %v; want %+v", got, err, want)
	}
}

// TestRewrap: after it, only the first key is needed. Content and versions stay, and rows without a key are counted and kept.
func TestRewrap(t *testing.T) {
	t.Parallel()
	lost, older, newer := newKey(), newKey(), newKey()
	e := openEngine(t, t.TempDir())
	save(t, New(e, keysOf(t, lost)), "lost", 0, "lost")
	s := New(e, keysOf(t, older))
	save(t, s, "a", 0, "one")
	save(t, s, "a", 1, "two")
	save(t, s, "changed", 0, "changed")
	save(t, s, "no row", 0, "no row")
	save(t, s, "buried", 0, "buried")
	if err := s.Bury(t.Context(), "buried"); err != nil {
		t.Fatal(err)
	}
	changed := stored(t, s, "changed")
	changed[wrappedAt] ^= 1
	put(t, s, "changed", changed)
	put(t, s, "no row", []byte("no row"))

	s = New(e, keysOf(t, newer, older))
	save(t, s, "b", 0, "of b")
	before := stored(t, s, "a")
	wantRewrapped(t, s, Rewrapped{Done: 1, Missing: 1, Damaged: 2})
	if after := stored(t, s, "a"); !bytes.Equal(after[contentAt:], before[contentAt:]) || bytes.Equal(after, before) {
		t.Error("the content was changed, or nothing was")
	}
	wantRewrapped(t, s, Rewrapped{Missing: 1, Damaged: 2})

	s = New(e, keysOf(t, newer))
	wantRow(t, s, "a", Row{Version: 2, Data: []byte("two")})
	wantRow(t, s, "b", Row{Version: 1, Data: []byte("of b")})
	wantRow(t, s, "buried", Row{Gone: true})
	save(t, s, "a", 2, "three")
	wantRewrapped(t, New(e, keysOf(t, newer, lost, older)), Rewrapped{Done: 1, Damaged: 2})
	wantRow(t, s, "lost", Row{Version: 1, Data: []byte("lost")})
}

// ending is a context that ends when it was asked a number of times.
type ending struct {
	context.Context

	asks int
}

func (e *ending) Err() error {
	if e.asks--; e.asks < 0 {
		return context.Canceled
	}
	return nil
}

// TestRewrapGoesOn: a run that is interrupted keeps what it has done, and the next one does the rest.
func TestRewrapGoesOn(t *testing.T) {
	t.Parallel()
	const rows = 2*batchRows + 10
	older, newer := newKey(), newKey()
	e := openEngine(t, t.TempDir())
	s := New(e, keysOf(t, older))
	var changes []*change
	for i := range rows {
		changes = append(changes, saving(t, s, types.UID(fmt.Sprintf("c%03d", i)), 0, "tokens"))
	}
	if err := s.commit(engine.Grow, changes...); err != nil {
		t.Fatal(err)
	}
	s = New(e, keysOf(t, newer, older))
	got, err := s.Rewrap(&ending{t.Context(), batchRows + 10})
	if want := (Rewrapped{Done: batchRows}); !errors.Is(err, context.Canceled) || got != want {
		t.Errorf("%+v, %v; want %+v", got, err, want)
	}
	wantRewrapped(t, s, Rewrapped{Done: rows - batchRows})
	s = New(e, keysOf(t, newer))
	for uid := range owners(t, s) {
		wantRow(t, s, uid, Row{Version: 1, Data: []byte("tokens")})
	}
}

// TestRewrapDuringSaves: rows are saved while they are rewrapped, and neither loses the other's work.
func TestRewrapDuringSaves(t *testing.T) {
	t.Parallel()
	const rows, rounds = 8, 10
	older, newer := newKey(), newKey()
	e := openEngine(t, t.TempDir())
	s := New(e, keysOf(t, older))
	uid := func(i int) types.UID { return types.UID(fmt.Sprintf("c%d", i)) }
	for i := range rows {
		save(t, s, uid(i), 0, "0")
	}
	s = New(e, keysOf(t, newer, older))
	var wg sync.WaitGroup
	for i := range rows {
		wg.Go(func() {
			for version := range int64(rounds) {
				if _, err := s.Save(t.Context(), uid(i), version+1, fmt.Append(nil, version+1)); err != nil {
					t.Error(err)
				}
			}
		})
	}
	wg.Go(func() {
		if got, err := s.Rewrap(t.Context()); err != nil || got.Missing+got.Damaged > 0 {
			t.Errorf("%+v, %v", got, err)
		}
	})
	wg.Wait()
	s = New(e, keysOf(t, newer))
	for i := range rows {
		wantRow(t, s, uid(i), Row{Version: rounds + 1, Data: fmt.Append(nil, rounds)})
	}
}

// found returns which of the texts are in the files of a folder.
func found(t *testing.T, dir string, texts map[string][]byte) map[string]bool {
	t.Helper()
	in := map[string]bool{}
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		b, err := os.ReadFile(path)
		for name, text := range texts {
			in[name] = in[name] || bytes.Contains(b, text)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return in
}

// TestNothingInTheClear: neither the content nor a key is in the files of a store, nor of a backup, and a backup has the rows as they are.
func TestNothingInTheClear(t *testing.T) {
	t.Parallel()
	data, line := t.TempDir(), newKey()
	dir := filepath.Join(data, "store")
	keys := keysOf(t, line)
	e := openEngine(t, dir)
	s := New(e, keys)
	canary := newKey() // random, so no compression hides it
	save(t, s, "a", 0, canary)
	save(t, s, "a", 1, canary)
	save(t, s, "buried", 0, canary)
	if err := s.Bury(t.Context(), "buried"); err != nil {
		t.Fatal(err)
	}
	row := stored(t, s, "a")
	r, err := parse("a", row)
	if err != nil {
		t.Fatal(err)
	}
	key, err := keys.unwrap("a", r)
	if err != nil {
		t.Fatal(err)
	}
	control := []byte(newKey())
	put(t, s, "control", control)
	texts := map[string][]byte{"canary": []byte(canary[:20]), "data key": key, "key": []byte(line[:20]), "control": control, "row": row[wrappedAt:]}
	want := map[string]bool{"control": true, "row": true}
	check := func(where string) {
		t.Helper()
		for name, in := range found(t, data, texts) {
			if in != want[name] {
				t.Errorf("%s: %s is there: %v", where, name, in)
			}
		}
	}

	source, err := backup.Open(t.Context(), e, time.Unix(1_700_000_000, 0))
	if err != nil {
		t.Fatal(err)
	}
	var archived bytes.Buffer
	if err := errors.Join(source.Write(t.Context(), &archived), source.Close(), e.Close()); err != nil {
		t.Fatal(err)
	}
	check("a closed store")
	e = openEngine(t, dir) // which writes tables of the log
	wantRow(t, New(e, keys), "a", Row{Version: 2, Data: []byte(canary)})
	if err := e.Close(); err != nil {
		t.Fatal(err)
	}
	check("a store that was opened again")

	data = t.TempDir()
	restored, err := backup.Restore(t.Context(), &archived, data, backup.Stores{
		Lock: local.Lock,
		Open: func(ctx context.Context, dir string) (engine.Engine, error) {
			return local.Open(ctx, local.Options{Dir: dir})
		},
		Forget: func(dataDir string) error { return local.RemoveMark(filepath.Join(dataDir, local.MarkFile)) },
	})
	if err != nil {
		t.Fatal(err)
	}
	check("a restored store")
	s = New(openEngine(t, restored.Dir), keys)
	wantRow(t, s, "a", Row{Version: 2, Data: []byte(canary)})
	wantRow(t, s, "buried", Row{Gone: true})
	if !bytes.Equal(stored(t, s, "a"), row) {
		t.Error("the restored row is another one")
	}
}
