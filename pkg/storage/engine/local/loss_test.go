// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package local_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/go-logr/logr/funcr"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	"k8s.io/klog/v2"

	"github.com/platform-ai/platform/pkg/storage/engine/local"
	"github.com/platform-ai/platform/pkg/storage/engine/local/localtest"
)

const markFile = "store.mark"

// openMarked opens the store of a disk that keeps a mark.
func openMarked(d *localtest.Disk, accept ...string) (*local.Engine, error) {
	return local.Open(context.Background(), local.Options{
		Dir: localtest.Dir, FS: d.FS(), MemTableBytes: 64 << 10, Mark: markFile, Keys: []string{"ca.crt"}, AcceptLoss: accept,
	})
}

// killed returns the disk of a store that lost power with several write-ahead logs, and the files of the store.
func killed(t *testing.T) (d *localtest.Disk, files []string, acked map[string]uint64) {
	t.Helper()
	disk, l := localtest.NewDisk(), newLedger()
	e, err := openMarked(disk)
	if err != nil {
		t.Fatal(err)
	}
	disk.Fail(func(o localtest.Op) error { // tables cannot be written, so the logs are kept
		if strings.HasSuffix(o.Path, ".sst") {
			return localtest.ErrInjected
		}
		return nil
	})
	for i := 0; len(logs(files)) < 3; i++ {
		if err := l.write(e, fmt.Sprint(i)); err != nil {
			t.Fatal(err)
		}
		if files, err = disk.FS().List(localtest.Dir); err != nil {
			t.Fatal(err)
		}
	}
	if err := l.write(e, "last"); err != nil {
		t.Fatal(err)
	}
	_, acked = l.copies()
	d = disk.Crash(0, 0)
	disk.Fail(nil)
	if err := e.Close(); err != nil {
		t.Error(err)
	}
	slices.Sort(files)
	return d, files, acked
}

// move renames a file durably.
func move(t *testing.T, fs local.FS, from, to string) {
	t.Helper()
	if err := fs.Rename(from, to); err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{from, to} {
		d, err := fs.OpenDir(fs.PathDir(path))
		if err != nil {
			t.Fatal(err)
		}
		if err := errors.Join(d.Sync(), d.Close()); err != nil {
			t.Fatal(err)
		}
	}
}

func logs(files []string) []string { return named(files, "", ".log") }

func named(files []string, prefix, suffix string) (found []string) {
	for _, f := range files {
		if strings.HasPrefix(f, prefix) && strings.HasSuffix(f, suffix) {
			found = append(found, f)
		}
	}
	return found
}

// A store that lost a file is refused with the name of the file, and nothing is modified: it opens when the file is back. With the
// loss accepted it opens without it, at a new base, and remembers the loss.
func TestMissingFile(t *testing.T) {
	for _, c := range []struct {
		name   string
		file   func(files []string) string
		accept string // "" for the name of the file
		whole  bool   // the loss is all of the store
	}{
		{name: "middle log", file: func(f []string) string { return logs(f)[1] }},
		{name: "last log", file: func(f []string) string { return logs(f)[len(logs(f))-1] }},
		{name: "manifest", file: func(f []string) string { return named(f, "MANIFEST-", "")[len(named(f, "MANIFEST-", ""))-1] }, whole: true},
		{name: "marker of the manifest", file: func(f []string) string { return named(f, "marker.manifest.", "")[0] }, accept: "marker.manifest", whole: true},
		{name: "marker of the format", file: func(f []string) string { return named(f, "marker.format-version.", "")[0] }, accept: "marker.format-version", whole: true},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			disk, files, acked := killed(t)
			file, fs := c.file(files), disk.FS()
			path, aside := fs.PathJoin(localtest.Dir, file), "aside"
			move(t, fs, path, aside)
			name := c.accept
			if name == "" {
				name = file
			}
			for range 2 { // a refusal changes nothing
				_, err := openMarked(disk, "other.log")
				var lost *local.LossError
				if !errors.As(err, &lost) || len(lost.Losses) != 1 || lost.Losses[0].Name != name || !strings.Contains(err.Error(), "--accept-data-loss="+name) {
					t.Fatalf("without %s: %v", file, err)
				}
			}
			without := disk.Crash(100, 0)
			move(t, fs, aside, path)
			holds(t, disk, acked, len(acked))

			e, err := openMarked(without, name)
			if err != nil {
				t.Fatal(err)
			}
			if e.Base() < 1<<32 || e.Revision() != e.Base() {
				t.Errorf("the base is %d, the revision %d", e.Base(), e.Revision())
			}
			kept := count(t, e)
			if err := e.Close(); err != nil {
				t.Fatal(err)
			}
			remembers(t, without, name)
			if c.whole != (kept == 0) || kept >= len(acked) {
				t.Errorf("%d of %d writes were kept", kept, len(acked))
			}
			holds(t, without, nil, kept)
		})
	}
}

// remembers opens the store of a disk, which says at each start what it has lost, in its log and as a metric.
func remembers(t *testing.T, d *localtest.Disk, name string) {
	t.Helper()
	var said []string
	registry := prometheus.NewRegistry()
	ctx := klog.NewContext(context.Background(), funcr.New(func(_, args string) { said = append(said, args) }, funcr.Options{}))
	e, err := local.Open(ctx, local.Options{
		Dir: localtest.Dir, FS: d.FS(), MemTableBytes: 64 << 10, Mark: markFile, Keys: []string{"ca.crt"}, Registerer: registry,
	})
	if err != nil {
		t.Fatal(err)
	}
	if !slices.ContainsFunc(said, func(line string) bool { return strings.Contains(line, "has lost data") && strings.Contains(line, name) }) {
		t.Errorf("the log does not say that %s was lost: %q", name, said)
	}
	const want = `# HELP platform_store_accepted_losses Parts of the store that were lost, and without which it was opened with --accept-data-loss.
# TYPE platform_store_accepted_losses gauge
platform_store_accepted_losses 1
`
	if err := testutil.GatherAndCompare(registry, strings.NewReader(want), "platform_store_accepted_losses"); err != nil {
		t.Error(err)
	}
	if err := e.Close(); err != nil {
		t.Error(err)
	}
}

// A store that lacks a table, or has a part of one, is refused with the number of the table and what to do. It opens when the
// table is back.
func TestMissingTable(t *testing.T) {
	t.Parallel()
	disk, l := localtest.NewDisk(), newLedger()
	e, err := openMarked(disk)
	if err != nil {
		t.Fatal(err)
	}
	var tables []string
	for i := 0; len(tables) == 0; i++ {
		if err := l.write(e, fmt.Sprint(i)); err != nil {
			t.Fatal(err)
		}
		files, err := disk.FS().List(localtest.Dir)
		if err != nil {
			t.Fatal(err)
		}
		tables = named(files, "", ".sst")
	}
	if err := e.Close(); err != nil {
		t.Fatal(err)
	}
	files, err := disk.FS().List(localtest.Dir)
	if err != nil {
		t.Fatal(err)
	}
	tables = named(files, "", ".sst")
	_, acked := l.copies()
	path := disk.FS().PathJoin(localtest.Dir, tables[0])
	refused := func(how string) {
		t.Helper()
		if _, err := openMarked(disk); err == nil || !strings.Contains(err.Error(), strings.TrimSuffix(tables[0], ".sst")) || !strings.Contains(err.Error(), "restore a backup") {
			t.Errorf("%s: %v", how, err)
		}
	}
	move(t, disk.FS(), path, "aside")
	refused("missing")
	part, err := disk.FS().Create(path, vfs.WriteCategoryUnspecified)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := part.Write([]byte("cut")); err != nil {
		t.Fatal(err)
	}
	if err := part.Close(); err != nil {
		t.Fatal(err)
	}
	refused("cut off")
	move(t, disk.FS(), "aside", path)
	holds(t, disk, acked, len(acked))
}

// holds opens the store of a disk with a mark, and compares what it holds.
func holds(t *testing.T, d *localtest.Disk, acked map[string]uint64, n int) {
	t.Helper()
	e, err := openMarked(d)
	if err != nil {
		t.Fatal(err)
	}
	for key := range acked {
		if _, ok, err := e.Get([]byte("t" + key)); !ok || err != nil {
			t.Errorf("%s: %v, %v", key, ok, err)
		}
	}
	if got := count(t, e); got != n {
		t.Errorf("it holds %d writes, want %d", got, n)
	}
	if err := e.Close(); err != nil {
		t.Error(err)
	}
}

func count(t *testing.T, e *local.Engine) (n int) {
	t.Helper()
	it, err := e.NewIter([]byte("t"), []byte("u"))
	if err != nil {
		t.Fatal(err)
	}
	defer it.Close()
	for ok := it.First(); ok; ok = it.Next() {
		n++
	}
	return n
}

// An empty folder is refused where a store was kept, and where keys show that there was one.
func TestMissingStore(t *testing.T) {
	disk, _, acked := killed(t)
	fs := disk.FS()
	move(t, fs, localtest.Dir, "aside")
	_, err := openMarked(disk)
	var lost *local.LossError
	if !errors.As(err, &lost) || len(lost.Losses) != 1 || !strings.HasPrefix(lost.Losses[0].Name, "store:") {
		t.Fatal(err)
	}
	if _, err := fs.Stat(localtest.Dir); err == nil {
		t.Error("the refusal made the folder")
	}
	empty := disk.Crash(100, 0)
	move(t, fs, "aside", localtest.Dir)
	holds(t, disk, acked, len(acked))
	if e, err := openMarked(empty, lost.Losses[0].Name); err != nil || e.Close() != nil {
		t.Error(err)
	}
	holds(t, empty, nil, 0)

	keys := localtest.NewDisk()
	if f, err := keys.FS().Create("ca.crt", "test"); err != nil || f.Close() != nil {
		t.Fatal(err)
	}
	if _, err := openMarked(keys); !errors.As(err, &lost) || lost.Losses[0].Name != "store" {
		t.Error(err)
	}
}

// A store that was cut off, or replaced by an older copy of itself or another store, is refused.
func TestOlderStore(t *testing.T) {
	for _, c := range []struct {
		name   string
		change func(t *testing.T, d *localtest.Disk)
	}{
		{"log cut off", func(t *testing.T, d *localtest.Disk) { cut(t, d, ".log") }},
		{"manifest cut off", func(t *testing.T, d *localtest.Disk) { cut(t, d, "MANIFEST-") }},
		{"older copy", func(t *testing.T, d *localtest.Disk) { move(t, d.FS(), "older", localtest.Dir) }},
		{"other store", func(t *testing.T, d *localtest.Disk) {
			if err := openWith(t, d, "", nil).Close(); err != nil {
				t.Fatal(err)
			}
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			disk, l := localtest.NewDisk(), newLedger()
			for round := range 2 {
				e, err := openMarked(disk)
				if err != nil {
					t.Fatal(err)
				}
				for i := range 100 {
					if err := l.write(e, fmt.Sprint(round, "/", i)); err != nil {
						t.Fatal(err)
					}
				}
				if err := e.Close(); err != nil {
					t.Fatal(err)
				}
				if round == 0 {
					clone(t, disk, localtest.Dir, "older")
				}
			}
			clone(t, disk, localtest.Dir, "newest")
			if !strings.HasSuffix(c.name, "cut off") {
				move(t, disk.FS(), localtest.Dir, "aside")
			}
			c.change(t, disk)
			var lost *local.LossError
			if _, err := openMarked(disk); !errors.As(err, &lost) {
				t.Fatalf("it opened: %v", err)
			}
			if err := disk.FS().RemoveAll(localtest.Dir); err != nil {
				t.Fatal(err)
			}
			clone(t, disk, "newest", localtest.Dir)
			_, acked := l.copies()
			holds(t, disk, acked, len(acked))
		})
	}
}

// clone copies a folder.
func clone(t *testing.T, d *localtest.Disk, from, to string) {
	t.Helper()
	if _, err := vfs.Clone(d.FS(), d.FS(), from, to, vfs.CloneSync); err != nil {
		t.Fatal(err)
	}
}

// cut removes the second half of the newest file whose name contains part.
func cut(t *testing.T, d *localtest.Disk, part string) {
	t.Helper()
	files, err := d.FS().List(localtest.Dir)
	if err != nil {
		t.Fatal(err)
	}
	files = slices.DeleteFunc(files, func(f string) bool { return !strings.Contains(f, part) || strings.HasPrefix(f, "marker") })
	path := d.FS().PathJoin(localtest.Dir, slices.Max(files))
	content, err := d.Read(path)
	if err != nil {
		t.Fatal(err)
	}
	if err := d.Write(path, content[:len(content)/2]); err != nil {
		t.Fatal(err)
	}
}

// A store of an earlier version has no mark. It opens, and gets one. A version without marks may have the store open meanwhile.
func TestMarkOfEarlierVersions(t *testing.T) {
	disk, l := localtest.NewDisk(), newLedger()
	for i, open := range []func() (*local.Engine, error){
		func() (*local.Engine, error) { return openOn(t, disk, nil), nil },
		func() (*local.Engine, error) { return openMarked(disk) },
		func() (*local.Engine, error) { return openOn(t, disk, nil), nil },
		func() (*local.Engine, error) { return openMarked(disk) },
	} {
		e, err := open()
		if err != nil {
			t.Fatalf("step %d: %v", i, err)
		}
		for n := range 200 {
			if err := l.write(e, fmt.Sprint(i, "/", n)); err != nil {
				t.Fatal(err)
			}
		}
		disk = disk.Crash(0, 0)
		if err := e.Close(); err != nil {
			t.Fatal(err)
		}
	}
	_, acked := l.copies()
	holds(t, disk, acked, len(acked))
}
