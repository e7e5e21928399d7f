// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package backup

import (
	"archive/tar"
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/platform-ai/platform/pkg/storage/archive"
	"github.com/platform-ai/platform/pkg/storage/engine"
	"github.com/platform-ai/platform/pkg/storage/engine/local"
)

// put writes keys as one request.
type put []string

func (p put) Sequence(b engine.Batch) error {
	b.Next()
	for _, k := range p {
		if err := b.Set([]byte(k), []byte(strings.Repeat(k, 100))); err != nil {
			return err
		}
	}
	return nil
}

func (put) Publish() {}

// stores is the local engine, as the restore command gives it.
func stores() Stores {
	return Stores{
		Lock: local.Lock,
		Open: func(ctx context.Context, dir string) (engine.Engine, error) {
			e, err := local.Open(ctx, local.Options{Dir: dir, OnCorruption: func(error) {}})
			if err != nil {
				return nil, err
			}
			return e, nil
		},
		Forget: func(dataDir string) error { return local.RemoveMark(filepath.Join(dataDir, local.MarkFile)) },
	}
}

func openStore(t testing.TB, dir string) engine.Engine {
	t.Helper()
	e, err := local.Open(context.Background(), local.Options{Dir: dir, OnFatal: func(err error) { t.Errorf("fatal: %v", err) }})
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

// stored returns a store with entries of every kind.
func stored(t testing.TB) engine.Engine {
	t.Helper()
	e := openStore(t, filepath.Join(t.TempDir(), "store"))
	for i := range 10 {
		p := put{fmt.Sprintf("k/registry/tasks/%d", i), fmt.Sprintf("v/registry/tasks/%d", i), fmt.Sprintf("ed%d", i), fmt.Sprintf("ed%d-2", i), fmt.Sprintf("er%d", i)}
		if err := e.Commit(p); err != nil {
			t.Fatal(err)
		}
	}
	if err := e.Commit(put{"bUID\x00fresult\x00", "bUID\x00gresult\x00\x00\x00\x00\x01", "bUID\x00l00000000", "tUID\x00h", "tUID\x00m00000001", "tUID\x00m00000002"}); err != nil {
		t.Fatal(err)
	}
	return e
}

func wantContents() Contents { return Contents{Objects: 10, Events: 20, Files: 1, Messages: 2} }

// written returns a backup of e.
func written(t testing.TB, e engine.Engine) []byte {
	t.Helper()
	s, err := Open(t.Context(), e, time.Unix(1_800_000_000, 0))
	if err != nil {
		t.Fatal(err)
	}
	var b bytes.Buffer
	if err := errors.Join(s.Write(t.Context(), &b), s.Close()); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// content returns every key and value of a store except the engine's own.
func content(t testing.TB, e engine.Engine) map[string]string {
	t.Helper()
	it, err := e.NewIter(nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	all := map[string]string{}
	for ok := it.First(); ok; ok = it.Next() {
		if it.Key()[0] != 'm' {
			all[string(it.Key())] = string(it.Value())
		}
	}
	if err := it.Close(); err != nil {
		t.Fatal(err)
	}
	return all
}

// names returns all names in a folder.
func names(t testing.TB, dir string) (all []string) {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		all = append(all, e.Name())
	}
	return all
}

// Names of the format, for making invalid backups by hand.
const (
	manifestName = "platform-backup.json"
	sumsName     = "SHA256SUMS"
	partial      = ".partial"
)

func entryName(f archive.File) string { return archive.StoreFolder + "/" + f.Name }

// Package archive states the layout without importing the engine; it must be that of this version's engine.
func TestStoreLayout(t *testing.T) {
	if archive.StoreLayout != local.Layout {
		t.Errorf("archives have stores of layout %q, the engine writes %q", archive.StoreLayout, local.Layout)
	}
}

func TestRestoreBringsBackEverything(t *testing.T) {
	e := stored(t)
	revision := e.Revision()
	b := written(t, e)
	if err := e.Commit(put{"klater"}); err != nil {
		t.Fatal(err)
	}
	dir := filepath.Join(t.TempDir(), "new", "data")
	r, err := Restore(t.Context(), bytes.NewReader(b), dir, stores())
	if err != nil {
		t.Fatal(err)
	}
	if r.Revision != revision || r.Contents != wantContents() || r.Base != revision+rebaseBy || r.Dir != filepath.Join(dir, "store") {
		t.Errorf("restored %+v, want revision %d and %+v", r, revision, wantContents())
	}
	if got := names(t, dir); !cmp.Equal(got, []string{"store"}) {
		t.Errorf("the folder has %v", got)
	}
	found := openStore(t, r.Dir)
	want := content(t, e)
	delete(want, "klater")
	if diff := cmp.Diff(want, content(t, found)); diff != "" {
		t.Errorf("restored store: %s", diff)
	}
	if found.Base() != r.Base || found.Revision() != r.Base {
		t.Errorf("it goes on at %d with base %d, want %d", found.Revision(), found.Base(), r.Base)
	}
}

func TestBackupOfARestoredStore(t *testing.T) {
	dir := t.TempDir()
	if _, err := Restore(t.Context(), bytes.NewReader(written(t, stored(t))), dir, stores()); err != nil {
		t.Fatal(err)
	}
	e := openStore(t, filepath.Join(dir, "store"))
	again := t.TempDir()
	r, err := Restore(t.Context(), bytes.NewReader(written(t, e)), again, stores())
	if err != nil {
		t.Fatal(err)
	}
	if r.Contents != wantContents() || r.Base != e.Base()+rebaseBy {
		t.Errorf("restored %+v", r)
	}
}

func TestRestoreLeavesAStoreAlone(t *testing.T) {
	dir := t.TempDir()
	target := filepath.Join(dir, "store")
	e := openStore(t, target)
	if err := e.Close(); err != nil {
		t.Fatal(err)
	}
	before := names(t, target)
	if _, err := Restore(t.Context(), bytes.NewReader(written(t, stored(t))), dir, stores()); !errors.Is(err, ErrStoreExists) {
		t.Errorf("restored over a store: %v", err)
	}
	if diff := cmp.Diff(before, names(t, target)); diff != "" {
		t.Errorf("the store was changed: %s", diff)
	}
}

// A store that is there is moved aside only when the backup is whole, and never while a server has it open.
func TestRestoreSetsAside(t *testing.T) {
	dir := t.TempDir()
	target, s := filepath.Join(dir, "store"), stores()
	s.Aside = filepath.Join(dir, "store-before")
	restore := func(b []byte) error {
		_, err := Restore(t.Context(), bytes.NewReader(b), dir, s)
		return err
	}
	whole := written(t, stored(t))
	e := openStore(t, target)
	if err := restore(whole); !errors.Is(err, engine.ErrLocked) {
		t.Errorf("below a server: %v", err)
	}
	if err := e.Close(); err != nil {
		t.Fatal(err)
	}
	before := names(t, target)
	if err := restore(whole[:len(whole)/2]); err == nil {
		t.Error("half a backup was restored")
	}
	if diff := cmp.Diff(before, names(t, target)); diff != "" {
		t.Errorf("half a backup changed the store: %s", diff)
	}
	if err := restore(whole); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(before, names(t, s.Aside)); diff != "" {
		t.Errorf("the store that was moved away: %s", diff)
	}
	if err := restore(whole); !errors.Is(err, ErrStoreExists) {
		t.Errorf("onto a store that was moved away: %v", err)
	}
}

// A store is not moved into place while the data folder has a record of another one.
func TestRestoreThatCannotForget(t *testing.T) {
	dir, s, no := t.TempDir(), stores(), errors.New("no")
	s.Forget = func(string) error { return no }
	if _, err := Restore(t.Context(), bytes.NewReader(written(t, stored(t))), dir, s); !errors.Is(err, no) {
		t.Errorf("error %v", err)
	}
	if got := names(t, dir); len(got) != 0 {
		t.Errorf("%v is left", got)
	}
}

func TestOneRestoreAtATime(t *testing.T) {
	dir := t.TempDir()
	b := written(t, stored(t))
	r, w := io.Pipe()
	first := make(chan error, 1)
	go func() {
		_, err := Restore(context.Background(), r, dir, stores())
		first <- err
	}()
	if _, err := w.Write(b[:1024]); err != nil { // it reads, so it has the lock
		t.Fatal(err)
	}
	if _, err := Restore(t.Context(), bytes.NewReader(b), dir, stores()); !errors.Is(err, engine.ErrLocked) {
		t.Errorf("second restore: %v", err)
	}
	if _, err := w.Write(b[1024:]); err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(w.Close(), <-first); err != nil {
		t.Errorf("first restore: %v", err)
	}
}

func TestRestoreAfterAKilledOne(t *testing.T) {
	dir := t.TempDir()
	left := filepath.Join(dir, restoringFolder, archive.StoreFolder)
	if err := os.MkdirAll(left, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(left, "000005.sst"), []byte("half"), 0o600); err != nil {
		t.Fatal(err)
	}
	r, err := Restore(t.Context(), bytes.NewReader(written(t, stored(t))), dir, stores())
	if err != nil || r.Contents != wantContents() {
		t.Errorf("%+v, %v", r, err)
	}
	if got := names(t, dir); !cmp.Equal(got, []string{"store"}) {
		t.Errorf("the folder has %v", got)
	}
}

// TestDamage changes single bytes: the restore must be refused and leave nothing, or restore everything.
func TestDamage(t *testing.T) {
	e := stored(t)
	b := written(t, e)
	want := content(t, e)
	refused := 0
	for at := 0; at < len(b); at += 211 {
		damaged := bytes.Clone(b)
		damaged[at] ^= 1 << (at % 8)
		dir := t.TempDir()
		r, err := Restore(t.Context(), bytes.NewReader(damaged), dir, stores())
		if err != nil {
			refused++
			if got := names(t, dir); len(got) != 0 {
				t.Errorf("byte %d: %v is left", at, got)
			}
			continue
		}
		found := openStore(t, r.Dir)
		if diff := cmp.Diff(want, content(t, found)); diff != "" {
			t.Errorf("byte %d: %s", at, diff)
		}
		if err := found.Close(); err != nil {
			t.Error(err)
		}
	}
	if refused == 0 {
		t.Error("no damage was found")
	}
}

func TestTruncation(t *testing.T) {
	b := written(t, stored(t))
	end := bytes.LastIndex(b, []byte("store/")) // in the last line of the sums
	for at := 0; at < end; at += 1009 {
		dir := t.TempDir()
		_, err := Restore(t.Context(), bytes.NewReader(b[:at]), dir, stores())
		if !errors.Is(err, archive.ErrInvalid) || !strings.Contains(err.Error(), "cut off") {
			t.Errorf("%d of %d bytes: %v", at, len(b), err)
		}
		if got := names(t, dir); len(got) != 0 {
			t.Errorf("%d of %d bytes: %v is left", at, len(b), got)
		}
	}
}

// crafted is a backup made by hand, with correct digests.
type crafted struct {
	manifest archive.Manifest
	entries  []tar.Header // after the manifest; content is data
	data     [][]byte
	behind   bool // one more entry after the sums
}

func (c *crafted) bytes(t testing.TB) []byte {
	t.Helper()
	m, err := json.Marshal(c.manifest)
	if err != nil {
		t.Fatal(err)
	}
	var b, sums bytes.Buffer
	w := tar.NewWriter(&b)
	add := func(h tar.Header, data []byte) {
		h.Size = int64(len(data))
		if err := w.WriteHeader(&h); err != nil {
			t.Fatal(err)
		}
		if _, err := w.Write(data); err != nil {
			t.Fatal(err)
		}
		fmt.Fprintf(&sums, "%x  %s\n", sha256.Sum256(data), h.Name)
	}
	add(tar.Header{Name: manifestName, Typeflag: tar.TypeReg}, m)
	for i, h := range c.entries {
		add(h, c.data[i])
	}
	add(tar.Header{Name: sumsName, Typeflag: tar.TypeReg}, bytes.Clone(sums.Bytes()))
	if c.behind {
		add(tar.Header{Name: "store/behind", Typeflag: tar.TypeReg}, nil)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// drop removes the first file whose name has the suffix.
func (c *crafted) drop(suffix string) {
	i := slices.IndexFunc(c.manifest.Files, func(f archive.File) bool { return strings.HasSuffix(f.Name, suffix) })
	c.manifest.Files = slices.Delete(c.manifest.Files, i, i+1)
	c.entries = slices.Delete(c.entries, i, i+1)
	c.data = slices.Delete(c.data, i, i+1)
}

// opened parses a backup so that it can be changed.
func opened(t testing.TB, b []byte) *crafted {
	t.Helper()
	c := &crafted{}
	m, err := archive.Read(t.Context(), bytes.NewReader(b), func(f archive.File, r io.Reader) error {
		data, err := io.ReadAll(r)
		c.entries = append(c.entries, tar.Header{Name: entryName(f), Typeflag: tar.TypeReg})
		c.data = append(c.data, data)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	c.manifest = *m
	return c
}

func TestForgeriesAreRefused(t *testing.T) {
	b := written(t, stored(t))
	for name, tc := range map[string]struct {
		change func(*crafted)
		about  string
	}{
		"version":       {func(c *crafted) { c.manifest.Format = "platform-backup/9" }, `the backup has format "platform-backup/9"`},
		"store version": {func(c *crafted) { c.manifest.Store = "platform-store/9" }, `the store in the backup has format "platform-store/9"`},
		"traversal":     {func(c *crafted) { c.entries[0].Name = "store/../../evil" }, `entry "store/../../evil" where store/`},
		"listed path":   {func(c *crafted) { c.manifest.Files[0].Name = "../evil"; c.entries[0].Name = "store/../evil" }, `file "../evil"`},
		"absolute path": {func(c *crafted) { c.manifest.Files[0].Name = "/tmp/evil" }, `file "/tmp/evil"`},
		"hidden file":   {func(c *crafted) { c.manifest.Files[0].Name = ".evil" }, `file ".evil"`},
		"twice":         {func(c *crafted) { c.manifest.Files[1].Name = c.manifest.Files[0].Name }, "is not possible"},
		"negative size": {func(c *crafted) { c.manifest.Files[0].Size = -1 }, "is not possible"},
		"overflow":      {func(c *crafted) { c.manifest.Files[0].Size, c.manifest.Files[1].Size = 1<<62, 1<<62 }, "is not possible"},
		"symbolic link": {func(c *crafted) {
			c.entries[0].Typeflag, c.entries[0].Linkname, c.data[0] = tar.TypeSymlink, "/etc/passwd", nil
		}, "is not a plain file"},
		"folder":  {func(c *crafted) { c.entries[0].Typeflag, c.data[0] = tar.TypeDir, nil }, "is not a plain file"},
		"larger":  {func(c *crafted) { c.data[0] = append(c.data[0], 'x') }, "which is not what it must have"},
		"missing": {func(c *crafted) { c.entries, c.data = c.entries[1:], c.data[1:] }, "where store/000"},
		"more": {func(c *crafted) {
			c.entries = append(c.entries, tar.Header{Name: "store/x", Typeflag: tar.TypeReg})
			c.data = append(c.data, nil)
		}, "where SHA256SUMS must be"},
		"behind":          {func(c *crafted) { c.behind = true }, "there is more after"},
		"other revision":  {func(c *crafted) { c.manifest.Revision++ }, "its manifest says"},
		"unlisted layout": {func(c *crafted) { c.drop("LAYOUT") }, "is not a store"},
		"unlisted table":  {func(c *crafted) { c.drop(".sst") }, "000"},
		"damaged table": {func(c *crafted) {
			for i, f := range c.manifest.Files {
				if strings.HasSuffix(f.Name, ".sst") {
					c.data[i] = bytes.Clone(c.data[i])
					c.data[i][len(c.data[i])/4] ^= 1
				}
			}
		}, ""},
		"nothing": {func(c *crafted) { c.manifest.Files, c.entries, c.data = nil, nil, nil }, "revision"},
	} {
		t.Run(name, func(t *testing.T) {
			c := opened(t, b)
			tc.change(c)
			dir := t.TempDir()
			_, err := Restore(t.Context(), bytes.NewReader(c.bytes(t)), dir, stores())
			if err == nil || !strings.Contains(err.Error(), tc.about) {
				t.Errorf("error %v, want %q", err, tc.about)
			}
			if got := names(t, dir); len(got) != 0 {
				t.Errorf("%v is left", got)
			}
			if got := names(t, filepath.Dir(dir)); len(got) != 1 {
				t.Errorf("beside the folder: %v", got)
			}
		})
	}
}
