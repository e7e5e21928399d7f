// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package local_test

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"strings"
	"syscall"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs/errorfs"

	"github.com/platform-ai/platform/pkg/storage/engine"
	"github.com/platform-ai/platform/pkg/storage/engine/local"
	"github.com/platform-ai/platform/pkg/storage/engine/local/localtest"
	"github.com/platform-ai/platform/test/kit"
)

// A store of which something cannot be read ends in an error that names the file, and opens when the file can be read again.
func TestUnreadable(t *testing.T) {
	base, l := localtest.NewDisk(), newLedger()
	e, err := openMarked(base)
	if err != nil {
		t.Fatal(err)
	}
	for i := range 2000 {
		if err := l.write(e, fmt.Sprint(i)); err != nil {
			t.Fatal(err)
		}
	}
	disk := base.Crash(0, 0)
	if err := e.Close(); err != nil {
		t.Fatal(err)
	}
	_, acked := l.copies()
	files, err := disk.FS().List(localtest.Dir)
	if err != nil {
		t.Fatal(err)
	}
	tried := 0
	for _, file := range append(files, "", "../"+markFile) {
		if file == "BALLAST" || strings.HasPrefix(file, "marker.") {
			continue // nobody reads them
		}
		for _, kind := range []errorfs.OpKind{errorfs.OpOpen, errorfs.OpOpenDir, errorfs.OpList, errorfs.OpFileRead, errorfs.OpFileReadAt, errorfs.OpLock} {
			met := false
			unreadable := errorfs.Wrap(disk.Crash(100, 0).FS(), errorfs.InjectorFunc(func(op errorfs.Op) error {
				if op.Kind != kind || op.Path != disk.FS().PathJoin(localtest.Dir, file) {
					return nil
				}
				met = true
				return &fs.PathError{Op: "read", Path: op.Path, Err: syscall.EIO}
			}))
			e, err := local.Open(context.Background(), local.Options{Dir: localtest.Dir, FS: unreadable, Mark: markFile})
			if err == nil {
				if err := e.Close(); err != nil && !errors.Is(err, syscall.EIO) {
					t.Errorf("%s, %v: close: %v", file, kind, err)
				}
			} else if !errors.Is(err, syscall.EIO) || !strings.Contains(err.Error(), strings.TrimPrefix(file, "../")) {
				t.Errorf("%s, %v: %v", file, kind, err)
			}
			if met {
				tried++
			}
		}
	}
	if tried < 10 {
		t.Errorf("%d files were read", tried)
	}
	holds(t, disk, acked, len(acked))
}

// A store in which nothing can be written ends in an error, too, although Pebble would try again for ever.
func TestUnwritable(t *testing.T) {
	for _, part := range []string{".sst", ".log", "dbtmp"} {
		disk, _, acked := killed(t)
		disk.Fail(func(o localtest.Op) error {
			if strings.Contains(o.Path, part) {
				return &fs.PathError{Op: "write", Path: o.Path, Err: syscall.EACCES}
			}
			return nil
		})
		if _, err := openMarked(disk); !errors.Is(err, syscall.EACCES) || !strings.Contains(err.Error(), "store/") {
			t.Errorf("%s: %v", part, err)
		}
		disk.Fail(nil)
		unlocked(t, disk)
		holds(t, disk, acked, len(acked))
	}
}

// unlocked waits until an opening that was given up has ended.
func unlocked(t *testing.T, d *localtest.Disk) {
	t.Helper()
	kit.Await(t, "the store is unlocked", func() bool {
		e, err := openMarked(d)
		if err == nil {
			err = e.Close()
		}
		if err != nil && !errors.Is(err, engine.ErrLocked) {
			t.Fatal(err)
		}
		return err == nil
	})
}
