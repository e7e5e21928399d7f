// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package local_test

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"path"
	"slices"
	"strings"
	"testing"

	"github.com/platform-ai/platform/pkg/storage/engine"
	"github.com/platform-ai/platform/pkg/storage/engine/local"
	"github.com/platform-ai/platform/pkg/storage/engine/local/localtest"
)

// endless is the disk of a server that was killed, with everything that was written.
func endless(t *testing.T, writes int) (d *localtest.Disk, acked map[string]uint64) {
	t.Helper()
	disk, l := localtest.NewDisk(), newLedger()
	e, err := local.Open(t.Context(), local.Options{Dir: localtest.Dir, FS: disk.FS(), MemTableBytes: 1 << 20, Mark: markFile})
	if err != nil {
		t.Fatal(err)
	}
	for i := range writes {
		if err := l.write(e, fmt.Sprintf("%04d", i)); err != nil {
			t.Fatal(err)
		}
		if i%10 == 0 { // without a revision, and as large as several blocks of the log
			apply(t, e, func(b engine.Batch) error { return b.Set(fmt.Appendf(nil, "u%04d", i), bytes.Repeat([]byte{1}, 2000)) })
		}
	}
	_, acked = l.copies()
	d = disk.Crash(100, 0)
	if err := e.Close(); err != nil {
		t.Fatal(err)
	}
	return d, acked
}

// newestOf returns the newest file of a store with that prefix and suffix, and its content. That of a log is without the zeros at its end,
// where a log is longer than what was written to it; a manifest is not, and its last record may end with zeros.
func newestOf(t *testing.T, d *localtest.Disk, prefix, suffix string) (file string, content []byte) {
	t.Helper()
	files, err := d.FS().List(localtest.Dir)
	if err != nil {
		t.Fatal(err)
	}
	file = path.Join(localtest.Dir, slices.Max(named(files, prefix, suffix)))
	if content, err = d.Read(file); err != nil {
		t.Fatal(err)
	}
	if suffix == ".log" {
		content = bytes.TrimRight(content, "\x00")
	}
	return file, content
}

// A store whose newest log or manifest is damaged anywhere in what was acknowledged is refused, with the name of the file, and
// nothing is modified. With the loss accepted it opens with what was written before the damage, at a new base, and is whole from then on.
func TestDamagedNewestFile(t *testing.T) {
	const blocks = 64 << 10
	flip := func(at func(n int) int) func([]byte) []byte {
		return func(b []byte) []byte { b[at(len(b))] ^= 4; return b }
	}
	zero := func(from func(n int) int, n int) func([]byte) []byte {
		return func(b []byte) []byte { at := from(len(b)); clear(b[at:min(at+n, len(b))]); return b }
	}
	for _, c := range []struct {
		name           string
		prefix, suffix string
		damage         func([]byte) []byte
	}{
		{"a bit at the beginning", "", ".log", flip(func(int) int { return 40 })},
		{"a bit in the middle", "", ".log", flip(func(n int) int { return n / 2 })},
		{"a bit near the end", "", ".log", flip(func(n int) int { return n - 50 })},
		{"the last bit", "", ".log", flip(func(n int) int { return n - 1 })},
		{"zeros in the middle", "", ".log", zero(func(n int) int { return n / 2 }, blocks)},
		{"zeros at the end", "", ".log", zero(func(n int) int { return n - blocks }, blocks)},
		{"a cut of 64 KiB", "", ".log", func(b []byte) []byte { return b[:len(b)-blocks] }},
		{"a cut of a byte", "", ".log", func(b []byte) []byte { return b[:len(b)-1] }},
		{"an empty log", "", ".log", func([]byte) []byte { return nil }},
		{"a cut manifest", "MANIFEST-", "", func(b []byte) []byte { return b[:len(b)-30] }},
		{"a bit of the manifest", "MANIFEST-", "", flip(func(n int) int { return n - 10 })},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			disk, acked := endless(t, 3000)
			file, content := newestOf(t, disk, c.prefix, c.suffix)
			name := path.Base(file)
			if err := disk.Write(file, c.damage(bytes.Clone(content))); err != nil {
				t.Fatal(err)
			}
			for range 2 {
				var lost *local.LossError
				if _, err := openMarked(disk, "other.log"); !errors.As(err, &lost) || len(lost.Losses) != 1 || lost.Losses[0].Name != name || !strings.Contains(err.Error(), "--accept-data-loss="+name) {
					t.Fatalf("opened: %v", err)
				}
			}
			without := disk.Crash(100, 0)
			if err := disk.Write(file, content); err != nil {
				t.Fatal(err)
			}
			holds(t, disk, acked, len(acked))
			if c.suffix == "" {
				return // what a manifest lacks may be needed
			}

			e, err := openMarked(without, name)
			if err != nil {
				t.Fatal(err)
			}
			if e.Base() < 1<<32 || e.Revision() != e.Base() {
				t.Errorf("the base is %d, the revision %d", e.Base(), e.Revision())
			}
			kept := count(t, e)
			if kept >= len(acked) {
				t.Errorf("%d of %d writes were kept", kept, len(acked))
			}
			for key, rev := range acked { // a beginning of what was acknowledged, in its order
				v, ok, err := e.Get([]byte("t" + key))
				if err != nil || ok != (key < fmt.Sprintf("%04d", kept)) || ok && binary.BigEndian.Uint64(v) != rev {
					t.Fatalf("%d writes were kept; %s: %v, %v", kept, key, ok, err)
				}
			}
			l := newLedger()
			if err := l.write(e, "new"); err != nil || l.acked["new"] <= 1<<32 {
				t.Errorf("the next revision is %d: %v", l.acked["new"], err)
			}
			if err := e.Close(); err != nil {
				t.Fatal(err)
			}
			remembers(t, without, name)
			holds(t, without, nil, kept+1)
		})
	}
}

// A damaged log that is not the newest is refused and accepted likewise. What was written after the damage is not read, so that the store
// is in the state of one revision, and is kept aside.
func TestDamagedOlderLog(t *testing.T) {
	disk, files, acked := killed(t)
	file := path.Join(localtest.Dir, logs(files)[1])
	content, err := disk.Read(file)
	if err != nil {
		t.Fatal(err)
	}
	content[len(content)/2] ^= 1
	if err := disk.Write(file, content); err != nil {
		t.Fatal(err)
	}
	name := path.Base(file)
	for range 2 {
		var lost *local.LossError
		if _, err := openMarked(disk); !errors.As(err, &lost) || len(lost.Losses) != 1 || lost.Losses[0].Name != name {
			t.Fatalf("opened: %v", err)
		}
	}
	e, err := openMarked(disk, name)
	if err != nil {
		t.Fatal(err)
	}
	kept := count(t, e)
	for i := range kept {
		if _, ok, err := e.Get(fmt.Appendf(nil, "t%d", i)); !ok || err != nil {
			t.Errorf("%d writes were kept; write %d: %v, %v", kept, i, ok, err)
		}
	}
	if kept == 0 || kept >= len(acked) {
		t.Errorf("%d of %d writes were kept", kept, len(acked))
	}
	if err := e.Close(); err != nil {
		t.Fatal(err)
	}
	remembers(t, disk, name)
	var aside []string
	files, err = disk.FS().List(localtest.Dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, dir := range named(files, "lost-", "") {
		if aside, err = disk.FS().List(path.Join(localtest.Dir, dir)); err != nil {
			t.Fatal(err)
		}
	}
	if !slices.Contains(aside, name) || len(aside) < 2 {
		t.Errorf("kept aside: %v", aside)
	}
}

// Nothing that was not acknowledged is missed: a log may end anywhere after that, with the part of a write.
func TestUnacknowledgedEnd(t *testing.T) {
	disk, acked := endless(t, 100)
	file, content := newestOf(t, disk, "", ".log")
	for _, end := range [][]byte{nil, {1}, bytes.Repeat([]byte{0xff}, 40), make([]byte, 70<<10), content[:len(content)/2]} {
		torn := disk.Crash(100, 0)
		if err := torn.Write(file, slices.Concat(content, end)); err != nil {
			t.Fatal(err)
		}
		holds(t, torn, acked, len(acked))
	}
}

// What was reached is written again if that failed, and a failure does not fail a commit.
func TestReachedCannotBeWritten(t *testing.T) {
	disk, l := localtest.NewDisk(), newLedger()
	e, err := openMarked(disk)
	if err != nil {
		t.Fatal(err)
	}
	for i := range 30 {
		switch i {
		case 10:
			disk.Fail(func(o localtest.Op) error {
				if o.Path == markFile {
					return os.ErrPermission
				}
				return nil
			})
		case 20:
			disk.Fail(nil)
		}
		if err := l.write(e, fmt.Sprintf("%04d", i)); err != nil {
			t.Fatal(err)
		}
	}
	killed := disk.Crash(100, 0)
	if err := e.Close(); err != nil {
		t.Fatal(err)
	}
	file, content := newestOf(t, killed, "", ".log")
	if err := killed.Write(file, content[:len(content)-1]); err != nil {
		t.Fatal(err)
	}
	var lost *local.LossError
	if _, err := openMarked(killed); !errors.As(err, &lost) {
		t.Errorf("opened: %v", err)
	}
}
