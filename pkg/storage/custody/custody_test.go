// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package custody

import (
	"bytes"
	"crypto/rand"
	"encoding/base64"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"sync"
	"testing"

	"k8s.io/apimachinery/pkg/types"

	"github.com/platform-ai/platform/pkg/storage/engine"
	"github.com/platform-ai/platform/pkg/storage/engine/local"
)

func openEngine(t *testing.T, dir string) engine.Engine {
	t.Helper()
	e, err := local.Open(t.Context(), local.Options{Dir: dir, OnFatal: func(err error) { t.Errorf("fatal: %v", err) }})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := e.Close(); err != nil && !errors.Is(err, engine.ErrClosed) {
			t.Error(err)
		}
	})
	return e
}

// newKey returns a line of a key file.
func newKey() string {
	b := make([]byte, keyLen)
	_, _ = rand.Read(b)
	return base64.StdEncoding.EncodeToString(b) + "\n"
}

// keysOf returns the keys of a file that has these lines.
func keysOf(t *testing.T, lines ...string) *Keys {
	t.Helper()
	path := filepath.Join(t.TempDir(), "connections.keys")
	if err := os.WriteFile(path, []byte(joined(lines)), 0o600); err != nil {
		t.Fatal(err)
	}
	k, err := OpenKeys(path)
	if err != nil {
		t.Fatal(err)
	}
	return k
}

func joined(lines []string) (all string) {
	for _, l := range lines {
		all += l
	}
	return all
}

// newStore returns a store with a new key in a new engine.
func newStore(t *testing.T) *Store {
	t.Helper()
	return New(openEngine(t, t.TempDir()), keysOf(t, newKey()))
}

func save(t *testing.T, s *Store, uid types.UID, version int64, data string) {
	t.Helper()
	if got, err := s.Save(t.Context(), uid, version, []byte(data)); err != nil || got != version+1 {
		t.Fatalf("save %s over version %d: version %d, %v", uid, version, got, err)
	}
}

func wantRow(t *testing.T, s *Store, uid types.UID, want Row) {
	t.Helper()
	got, err := s.Load(uid)
	if err != nil || got.Version != want.Version || got.Gone != want.Gone || !bytes.Equal(got.Data, want.Data) {
		t.Errorf("%s: %+v, %v; want %+v", uid, got, err, want)
	}
}

func wantConflict(t *testing.T, err error, expected, current int64) {
	t.Helper()
	if c, ok := errors.AsType[*ConflictError](err); !ok || c.Expected != expected || c.Current != current {
		t.Errorf("error %v; want a conflict of %d with %d", err, expected, current)
	}
}

// stored returns the row that the engine has.
func stored(t *testing.T, s *Store, uid types.UID) []byte {
	t.Helper()
	b, ok, err := s.engine.Get(space.Key(uid))
	if err != nil || !ok {
		t.Fatalf("row of %s: %v, %v", uid, ok, err)
	}
	return b
}

// put writes a row as an attacker or a fault of the disk does.
func put(t *testing.T, s *Store, uid types.UID, row []byte) {
	t.Helper()
	b, err := s.engine.NewBatch()
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(b.Set(space.Key(uid), row), s.engine.Apply(b, engine.NoSync)); err != nil {
		t.Fatal(err)
	}
}

// owners returns what Owners shows: true for a tombstone.
func owners(t *testing.T, s *Store) map[types.UID]bool {
	t.Helper()
	all := map[types.UID]bool{}
	if err := s.Owners(t.Context(), func(uid types.UID, gone bool) error { all[uid] = gone; return nil }); err != nil {
		t.Fatal(err)
	}
	return all
}

// TestRoundTrip: what is saved is read again, also by the store that is opened next, and each write needs the version that it replaces.
func TestRoundTrip(t *testing.T) {
	t.Parallel()
	dir, keys := t.TempDir(), keysOf(t, newKey())
	e := openEngine(t, dir)
	s := New(e, keys)
	wantRow(t, s, "a", Row{})
	_, err := s.Save(t.Context(), "a", 1, []byte("early"))
	wantConflict(t, err, 1, 0)
	save(t, s, "a", 0, "one")
	_, err = s.Save(t.Context(), "a", 0, []byte("again"))
	wantConflict(t, err, 0, 1)
	save(t, s, "a", 1, "two")
	save(t, s, "empty", 0, "")
	large := bytes.Repeat([]byte("x"), MaxData)
	save(t, s, "large", 0, string(large))
	if _, err := s.Save(t.Context(), "large", 1, append(large, 'x')); !errors.Is(err, ErrTooLarge) {
		t.Errorf("a byte too much: %v", err)
	}
	if err := e.Close(); err != nil {
		t.Fatal(err)
	}
	s = New(openEngine(t, dir), keys)
	wantRow(t, s, "a", Row{Version: 2, Data: []byte("two")})
	wantRow(t, s, "empty", Row{Version: 1})
	wantRow(t, s, "large", Row{Version: 1, Data: large})
	wantRow(t, s, "b", Row{})
}

// TestNoUpdateIsLost: of writers that race for a version exactly one wins.
func TestNoUpdateIsLost(t *testing.T) {
	t.Parallel()
	const writers, rounds = 16, 25
	s := newStore(t)
	increment := func() error {
		for {
			row, err := s.Load("a")
			if err != nil {
				return err
			}
			n, err := strconv.Atoi("0" + string(row.Data))
			if err != nil {
				return err
			}
			_, err = s.Save(t.Context(), "a", row.Version, []byte(strconv.Itoa(n+1)))
			if _, lost := errors.AsType[*ConflictError](err); !lost {
				return err
			}
		}
	}
	var wg sync.WaitGroup
	for range writers {
		wg.Go(func() {
			for range rounds {
				if err := increment(); err != nil {
					t.Error(err)
					return
				}
			}
		})
	}
	wg.Wait()
	wantRow(t, s, "a", Row{Version: writers * rounds, Data: []byte(strconv.Itoa(writers * rounds))})
	if len(s.staged) != 0 {
		t.Errorf("%d rows are still being committed", len(s.staged))
	}
}

// TestBury: a tombstone stays, refuses writes whatever version they replace, and leaves nothing of the row.
func TestBury(t *testing.T) {
	t.Parallel()
	dir, keys := t.TempDir(), keysOf(t, newKey())
	e := openEngine(t, dir)
	s := New(e, keys)
	save(t, s, "a", 0, "one")
	save(t, s, "a", 1, "two")
	save(t, s, "b", 0, "stays")
	for range 2 {
		for _, uid := range []types.UID{"a", "never"} {
			if err := s.Bury(t.Context(), uid); err != nil {
				t.Fatal(err)
			}
		}
	}
	if err := e.Close(); err != nil {
		t.Fatal(err)
	}
	s = New(openEngine(t, dir), keys)
	for _, uid := range []types.UID{"a", "never"} {
		wantRow(t, s, uid, Row{Gone: true})
		for version := range int64(4) {
			if _, err := s.Save(t.Context(), uid, version, []byte("late")); !errors.Is(err, ErrGone) {
				t.Errorf("save %s over version %d: %v", uid, version, err)
			}
		}
		if row := stored(t, s, uid); !bytes.Equal(row, []byte{1, 0}) {
			t.Errorf("%s: the row is %x", uid, row)
		}
	}
	wantRow(t, s, "b", Row{Version: 1, Data: []byte("stays")})
}

// TestForget: a tombstone can be removed, and nothing else.
func TestForget(t *testing.T) {
	t.Parallel()
	s := newStore(t)
	save(t, s, "a", 0, "one")
	if err := s.Forget(t.Context(), "a"); !errors.Is(err, ErrNotBuried) {
		t.Errorf("forget a row: %v", err)
	}
	wantRow(t, s, "a", Row{Version: 1, Data: []byte("one")})
	if err := errors.Join(s.Bury(t.Context(), "a"), s.Forget(t.Context(), "a"), s.Forget(t.Context(), "a"), s.Forget(t.Context(), "never")); err != nil {
		t.Error(err)
	}
	if all := owners(t, s); len(all) != 0 {
		t.Errorf("%v is left", all)
	}
	save(t, s, "a", 0, "new")
	put(t, s, "a", []byte("not a row"))
	if err := s.Forget(t.Context(), "a"); !errors.Is(err, ErrNotBuried) {
		t.Errorf("forget a damaged row: %v", err)
	}
}

// TestOwners: all connections are shown, also those whose rows cannot be read, and f can bury them.
func TestOwners(t *testing.T) {
	t.Parallel()
	s := newStore(t)
	for _, uid := range []types.UID{"c", "a", "ab", "d"} {
		save(t, s, uid, 0, "tokens")
	}
	put(t, s, "d", []byte("not a row"))
	if err := s.Bury(t.Context(), "ab"); err != nil {
		t.Fatal(err)
	}
	var order []types.UID
	err := s.Owners(t.Context(), func(uid types.UID, gone bool) error {
		if order = append(order, uid); gone != (uid == "ab") {
			t.Errorf("%s: tombstone %v", uid, gone)
		}
		return s.Bury(t.Context(), uid)
	})
	if want := []types.UID{"a", "ab", "c", "d"}; err != nil || !slices.Equal(order, want) {
		t.Errorf("%v, %v; want %v", order, err, want)
	}
	for uid, gone := range owners(t, s) {
		if !gone {
			t.Errorf("%s was not buried", uid)
		}
	}
	failure := errors.New("enough")
	if err := s.Owners(t.Context(), func(types.UID, bool) error { return failure }); !errors.Is(err, failure) {
		t.Error(err)
	}
}

// TestNames: a UID that would be another key is refused.
func TestNames(t *testing.T) {
	t.Parallel()
	s := newStore(t)
	for _, uid := range []types.UID{"", "a\x00b"} {
		_, load := s.Load(uid)
		_, save := s.Save(t.Context(), uid, 0, nil)
		for _, err := range []error{load, save, s.Bury(t.Context(), uid), s.Forget(t.Context(), uid)} {
			if !errors.Is(err, ErrName) {
				t.Errorf("%q: %v", uid, err)
			}
		}
	}
}

// wantDamaged: a connection cannot be read, and the error says so.
func wantDamaged(t *testing.T, s *Store, uid types.UID, what string) {
	t.Helper()
	row, err := s.Load(uid)
	_, damaged := errors.AsType[*CorruptError](err)
	_, missing := errors.AsType[*KeyError](err)
	if !damaged && !missing || row.Data != nil || row.Gone {
		t.Errorf("%s: %+v, %v", what, row, err)
	}
}

// TestChangedRowsAreRefused: no byte of a row can be changed, removed or added without an error.
func TestChangedRowsAreRefused(t *testing.T) {
	t.Parallel()
	s := newStore(t)
	save(t, s, "a", 0, `{"token":"t"}`)
	save(t, s, "a", 1, `{"token":"u"}`)
	row := stored(t, s, "a")
	for i := range row {
		for _, mask := range []byte{1, 0x80, 0xff, row[i]} {
			if mask == 0 {
				continue
			}
			changed := bytes.Clone(row)
			changed[i] ^= mask
			put(t, s, "a", changed)
			wantDamaged(t, s, "a", "byte "+strconv.Itoa(i)+" changed by "+strconv.Itoa(int(mask)))
		}
		put(t, s, "a", row[:i])
		wantDamaged(t, s, "a", "the first "+strconv.Itoa(i)+" bytes")
	}
	put(t, s, "a", append(bytes.Clone(row), 0))
	wantDamaged(t, s, "a", "one more byte")
	for i := range tombstone() {
		changed := tombstone()
		changed[i] ^= 2
		put(t, s, "a", changed)
		wantDamaged(t, s, "a", "a changed tombstone")
	}
	if _, err := s.Save(t.Context(), "a", 2, nil); err == nil {
		t.Error("a damaged row was replaced")
	}
	put(t, s, "a", row)
	wantRow(t, s, "a", Row{Version: 2, Data: []byte(`{"token":"u"}`)})
	put(t, s, "a", []byte("not a row"))
	if err := s.Bury(t.Context(), "a"); err != nil {
		t.Errorf("bury a damaged row: %v", err)
	}
	wantRow(t, s, "a", Row{Gone: true})
}

// TestMovedRowsAreRefused: neither a row nor a part of one has a meaning at another place.
func TestMovedRowsAreRefused(t *testing.T) {
	t.Parallel()
	s := newStore(t)
	var rows [][]byte // of a
	for version := range int64(2) {
		save(t, s, "a", version, "of a "+strconv.Itoa(int(version)))
		rows = append(rows, stored(t, s, "a"))
	}
	save(t, s, "b", 0, "of b")
	b := stored(t, s, "b")
	put(t, s, "b", rows[0])
	wantDamaged(t, s, "b", "the row of another connection")
	put(t, s, "c", rows[0])
	wantDamaged(t, s, "c", "a row of a connection without one")
	put(t, s, "b", slices.Concat(b[:contentAt], rows[0][contentAt:]))
	wantDamaged(t, s, "b", "the content of another connection")
	put(t, s, "b", slices.Concat(b[:wrappedAt], rows[0][wrappedAt:]))
	wantDamaged(t, s, "b", "the key and the content of another connection")
	put(t, s, "a", slices.Concat(rows[1][:contentAt], rows[0][contentAt:]))
	wantDamaged(t, s, "a", "the content of an older version")
	put(t, s, "a", slices.Concat(rows[1][:wrappedAt], rows[0][wrappedAt:]))
	wantDamaged(t, s, "a", "the key and the content of an older version")
	put(t, s, "a", rows[1])
	wantRow(t, s, "a", Row{Version: 2, Data: []byte("of a 1")})
}
