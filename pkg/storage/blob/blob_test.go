// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package blob_test

import (
	"bytes"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"

	"github.com/platform-ai/platform/pkg/storage/blob"
	"github.com/platform-ai/platform/pkg/storage/engine/local"
	"github.com/platform-ai/platform/pkg/storage/engine/local/localtest"
)

func open(t *testing.T, dir string) *blob.Store {
	t.Helper()
	e, err := local.Open(t.Context(), local.Options{Dir: dir})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := e.Close(); err != nil {
			t.Error(err)
		}
	})
	return blob.New(e, blob.Limits{}, clock.RealClock{})
}

func pattern(n int) []byte {
	b := make([]byte, n)
	for i := range b {
		b[i] = byte(i*7 + i>>10)
	}
	return b
}

func TestFiles(t *testing.T) {
	s, ctx := open(t, t.TempDir()), t.Context()
	at := time.UnixMicro(1_700_000_000_123_456).UTC()
	put := func(uid types.UID, name, typ string, data []byte) {
		t.Helper()
		if err := s.PutFile(ctx, "default", uid, blob.File{Name: name, ContentType: typ, CreatedAt: at}, data); err != nil {
			t.Fatal(err)
		}
	}
	put("u1", "b.txt", "text/plain", []byte("old and longer"))
	put("u1", "b.txt", "text/markdown", []byte("new"))
	put("u1", "a", "", nil)
	put("u1", "b.txt.more", "", pattern(3<<20+5))
	put("u1x", "other", "", []byte("x"))
	for name, want := range map[string][]byte{"b.txt": []byte("new"), "a": {}, "b.txt.more": pattern(3<<20 + 5)} {
		f, data, ok, err := s.File(ctx, "u1", name)
		if err != nil || !ok || !bytes.Equal(data, want) || f.Size != int64(len(want)) {
			t.Errorf("%s: %+v, %d bytes, %v, %v", name, f, len(data), ok, err)
		}
	}
	list, err := s.Files(ctx, "u1")
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff([]blob.File{
		{Name: "a", CreatedAt: at},
		{Name: "b.txt", ContentType: "text/markdown", Size: 3, CreatedAt: at},
		{Name: "b.txt.more", Size: 3<<20 + 5, CreatedAt: at},
	}, list); d != "" {
		t.Errorf("files (-want +got):\n%s", d)
	}
	for _, name := range []string{"b", "b.tx", "absent", "", "a\x00"} {
		if _, _, ok, err := s.File(ctx, "u1", name); ok || err != nil {
			t.Errorf("file %q: %v, %v", name, ok, err)
		}
	}
	if err := s.PutFile(ctx, "default", "u1", blob.File{Name: "a\x00b"}, nil); !errors.Is(err, blob.ErrName) {
		t.Errorf("put of a bad name: %v", err)
	}
}

func TestLogReadsBackFromEveryOffset(t *testing.T) {
	s, ctx := open(t, t.TempDir()), t.Context()
	whole := pattern(2<<20 + 300<<10)
	for rest, n := whole, 1; len(rest) > 0; n = n*3 + 1 {
		n = min(n, len(rest))
		if err := s.AppendLog(ctx, "default", "u", rest[:n]); err != nil {
			t.Fatal(err)
		}
		rest = rest[n:]
	}
	for _, from := range []int64{0, 1, 4, 255 << 10, 1<<20 + 17, int64(len(whole)) - 1, int64(len(whole)), int64(len(whole)) + 9} {
		var got []byte
		for {
			b, err := s.ReadLog(ctx, "u", from+int64(len(got)))
			if err != nil {
				t.Fatal(err)
			}
			if len(b) == 0 {
				break
			}
			got = append(got, b...)
		}
		if want := whole[min(from, int64(len(whole))):]; !bytes.Equal(got, want) {
			t.Errorf("from %d: %d bytes, want %d", from, len(got), len(want))
		}
	}
}

func TestConcurrentAppendsAreWhole(t *testing.T) {
	s, ctx := open(t, t.TempDir()), t.Context()
	var wg sync.WaitGroup
	for i := range 8 {
		wg.Go(func() {
			if err := s.AppendLog(ctx, "default", "u", fmt.Appendf(nil, "%d%d%d%d\n", i, i, i, i)); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	log, err := s.ReadLog(ctx, "u", 0)
	if err != nil {
		t.Fatal(err)
	}
	lines := strings.Fields(string(log))
	if len(lines) != 8 {
		t.Fatalf("log: %q", log)
	}
	for _, l := range lines {
		if l != strings.Repeat(l[:1], 4) {
			t.Errorf("torn line %q", l)
		}
	}
}

func TestDeleteTakesOneOwnerAndStaysAfterReopen(t *testing.T) {
	dir := t.TempDir()
	ctx := t.Context()
	e, err := local.Open(ctx, local.Options{Dir: dir})
	if err != nil {
		t.Fatal(err)
	}
	s := blob.New(e, blob.Limits{}, clock.RealClock{})
	for _, uid := range []types.UID{"a", "ab", "b"} {
		if err := errors.Join(s.AppendLog(ctx, "default", uid, []byte("log of "+uid)), s.PutFile(ctx, "default", uid, blob.File{Name: "f"}, []byte(uid))); err != nil {
			t.Fatal(err)
		}
	}
	if err := errors.Join(s.Delete(ctx, "a"), s.Delete(ctx, "never"), e.Close()); err != nil {
		t.Fatal(err)
	}
	s = open(t, dir)
	var owners []types.UID
	if err := s.Owners(ctx, func(uid types.UID) error { owners = append(owners, uid); return nil }); err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff([]types.UID{"ab", "b"}, owners); d != "" {
		t.Errorf("owners (-want +got):\n%s", d)
	}
	if log, err := s.ReadLog(ctx, "a", 0); err != nil || len(log) > 0 {
		t.Errorf("log of a: %q, %v", log, err)
	}
	if log, err := s.ReadLog(ctx, "ab", 4); err != nil || string(log) != "of ab" {
		t.Errorf("log of ab: %q, %v", log, err)
	}
}

func TestLogIsBounded(t *testing.T) {
	s, ctx := open(t, t.TempDir()), t.Context()
	const mark = "\n[log truncated: 10 MiB is the limit]\n"
	add := func(b []byte) {
		t.Helper()
		before := bytes.Clone(b)
		if err := s.AppendLog(ctx, "default", "u", b); err != nil {
			t.Fatal(err)
		}
		if !bytes.Equal(before, b) {
			t.Error("the data given was changed")
		}
	}
	whole := pattern(blob.MaxLogBytes + 7)
	add(whole[:blob.MaxLogBytes-3])
	add(whole[blob.MaxLogBytes-3:])
	add([]byte("more"))
	var got []byte
	for {
		b, err := s.ReadLog(ctx, "u", int64(len(got)))
		if err != nil {
			t.Fatal(err)
		}
		if len(b) == 0 {
			break
		}
		got = append(got, b...)
	}
	if want := string(whole[:blob.MaxLogBytes]) + mark; string(got) != want {
		t.Errorf("%d bytes, ends %q", len(got), got[max(0, len(got)-60):])
	}
}

// The power fails at any moment: a file is the old one or the new one, a log ends where an append ended,
// and everything acknowledged is stored.
func TestCrash(t *testing.T) {
	for seed := range uint64(20) {
		disk, ctx := localtest.NewDisk(), t.Context()
		old, next := pattern(700<<10), pattern(600<<10+1)
		run := func(d *localtest.Disk, f func(*blob.Store)) {
			t.Helper()
			e, err := local.Open(ctx, local.Options{Dir: localtest.Dir, FS: d.FS()})
			if err != nil {
				t.Fatal(err)
			}
			f(blob.New(e, blob.Limits{}, clock.RealClock{}))
			if err := e.Close(); err != nil {
				t.Fatal(err)
			}
		}
		crashed := disk
		run(disk, func(s *blob.Store) {
			if err := errors.Join(s.PutFile(ctx, "default", "u", blob.File{Name: "f"}, old), s.AppendLog(ctx, "default", "u", []byte("one "))); err != nil {
				t.Fatal(err)
			}
			// The second write is in flight when the power fails.
			var once sync.Once
			disk.Fail(func(op localtest.Op) error {
				if op.Log() && op.Kind == localtest.Sync {
					once.Do(func() { crashed = disk.Crash(50, seed) })
				}
				return nil
			})
			var err error
			if seed%2 == 0 {
				err = s.PutFile(ctx, "default", "u", blob.File{Name: "f"}, next)
			} else {
				err = s.AppendLog(ctx, "default", "u", []byte("two "))
			}
			if err != nil || crashed == disk {
				t.Errorf("seed %d: second write: %v", seed, err)
			}
		})
		run(crashed, func(s *blob.Store) {
			_, data, ok, err := s.File(ctx, "u", "f")
			if err != nil || !ok || !bytes.Equal(data, old) && (seed%2 == 1 || !bytes.Equal(data, next)) {
				t.Errorf("seed %d: file of %d bytes, %v, %v", seed, len(data), ok, err)
			}
			log, err := s.ReadLog(ctx, "u", 0)
			if err != nil || string(log) != "one " && (seed%2 == 0 || string(log) != "one two ") {
				t.Errorf("seed %d: log %q, %v", seed, log, err)
			}
		})
	}
}
